import { Button, Text } from "@mantine/core";
import { useRun } from "../api/queries";
import { Link } from "../app/Link";
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
    <QueryResult query={query} what={`experiment ${experiment}`}>
      {(asked) => {
        const over = OVER.includes(asked.state);
        return (
          <>
            <Text>
              <StateMark state={asked.state} />:{" "}
              <Link href={`/compare/${experiment}`}>
                {over ? "results of " : ""}experiment {experiment}
              </Link>
              {asked.error && `; ${asked.error}`}
            </Text>
            {!over && <ProgressBar experiment={asked} />}
            <Button my="xs" onClick={leave}>
              Back to the recording
            </Button>
            {run.experiment === experiment && (
              <WatchSource>
                <LiveFabric stacked />
              </WatchSource>
            )}
            {over && <Results experiment={asked} />}
          </>
        );
      }}
    </QueryResult>
  );
}
