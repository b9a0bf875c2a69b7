import { Button } from "@mantine/core";
import { Link } from "../app/Link";
import { useHas } from "../api/queries";
import { Command } from "../parts/Command";
import { DataTable } from "../parts/DataTable";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { dayTime, duration } from "../parts/units";
import { useExperiments } from "./queries";
import { StateMark } from "./StateMark";
import { ranS } from "./times";

const took = (seconds: number | null): string => (seconds === null ? "–" : duration(seconds));

export function ExperimentList() {
  const list = useExperiments();
  const queue = useHas("/specs");
  return (
    <Panel title="Experiments">
      <QueryResult query={list} subject="list of experiments">
        {({ pages }) => {
          const experiments = pages.flatMap((page) => page.experiments);
          return experiments.length === 0 ? (
            <Quiet>
              No experiment yet: begin one {queue ? "here, or " : ""}by <Command>./capstan run small</Command>
              . What it gives is kept and shown here.
            </Quiet>
          ) : (
            <>
              <DataTable
                label="Experiments"
                head={["experiment", "state", "submitted", "took"]}
                rows={experiments.map((experiment) => ({
                  key: experiment.id,
                  cells: [
                    <>
                      <Link href={`/compare/${experiment.id}`}>
                        {experiment.id}: {experiment.name}
                      </Link>
                      {experiment.simulated ? " (simulated)" : ""}
                      {experiment.points ? `, ${experiment.points} points` : ""}
                    </>,
                    <StateMark state={experiment.state} />,
                    dayTime(experiment.created_at),
                    took(ranS(experiment)),
                  ],
                }))}
              />
              {list.hasNextPage && (
                <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
                  Show older ones
                </Button>
              )}
            </>
          );
        }}
      </QueryResult>
    </Panel>
  );
}
