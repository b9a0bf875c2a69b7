import { Button, Text } from "@mantine/core";
import { useRun } from "../api/queries";
import { Link } from "../app/Link";
import { Notices } from "../experiments/Notices";
import { ProgressBar } from "../experiments/ProgressBar";
import { useExperiment } from "../experiments/queries";
import { Results } from "../experiments/Results";
import { StateMark } from "../experiments/StateMark";
import { OVER } from "../experiments/types";
import { QueryResult } from "../parts/QueryResult";
import { LiveFabric } from "../watch/WatchPage";
import { WatchSource } from "../watch/WatchSource";

/** Show the run that was started from a step, live, and its results once it has ended. */
export function LiveStage({ experiment, leave }: { experiment: number; leave: () => void }) {
  const query = useExperiment(experiment);
  const run = useRun();
  return (
    <>
      <Button mb="xs" onClick={leave}>
        Back to the recording
      </Button>
      <QueryResult query={query} subject={`experiment ${experiment}`}>
        {(started) => {
          const over = OVER.includes(started.state);
          return (
            <>
              <Text>
                <StateMark state={started.state} />:{" "}
                <Link href={`/compare/${experiment}`}>
                  {over ? "results of " : ""}experiment {experiment}
                </Link>
                {started.error && `; ${started.error}`}
              </Text>
              {!over && <ProgressBar experiment={started} />}
              {run.experiment === experiment && (
                <WatchSource>
                  <LiveFabric stacked />
                </WatchSource>
              )}
              {over && <Notices summary={started.summary} />}
              {over && <Results experiment={started} />}
            </>
          );
        }}
      </QueryResult>
    </>
  );
}
