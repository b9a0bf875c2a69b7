import { Group, Progress, Text } from "@mantine/core";
import { Quiet } from "../parts/Quiet";
import { useProgress } from "./queries";
import { roughly } from "./roughly";
import { shareDone } from "./shareDone";
import type { Experiment } from "./types";

/** Show an experiment's progress: how much of its time is over, how many runs and flows, and how long it still takes. */
export function ProgressBar({ experiment }: { experiment: Experiment }) {
  const query = useProgress(experiment.id, true);
  const progress = query.data ?? experiment.progress ?? null;
  if (!progress) return <Quiet>Its runner reports no progress.</Quiet>;
  const { runs_done: done, runs } = progress;
  return (
    <Group my={6}>
      <Progress.Root w={240} size="lg">
        <Progress.Section value={100 * shareDone(progress)} aria-label="Progress" />
      </Progress.Root>
      <Text span>
        {progress.queue_position !== null
          ? `number ${progress.queue_position} of the queue`
          : `run ${Math.min(done + 1, runs)} of ${runs}`}
        {(progress.points ?? 0) > 1 && `, ${progress.points_done} of ${progress.points} points done`}
        {progress.stage && `: ${progress.stage}`}
        {progress.flows > 0 && `, ${progress.flows_finished} of ${progress.flows} flows`}
        {progress.flows_failed > 0 && `, ✕ ${progress.flows_failed} failed`}
        {progress.left_s !== null && `; about ${roughly(progress.left_s)} left`}
      </Text>
    </Group>
  );
}
