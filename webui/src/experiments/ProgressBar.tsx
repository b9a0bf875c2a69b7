import { useProgress } from "./queries";
import { roughly } from "./roughly";
import type { Experiment } from "./types";

/** How far an experiment is; runs are counted, so it never goes back. */
export function ProgressBar({ experiment }: { experiment: Experiment }) {
  const asked = useProgress(experiment.id, true);
  const progress = asked.data ?? experiment.progress ?? null;
  if (!progress) return <p className="quiet">Its runner says no more than that it runs.</p>;
  const { runs_done: done, runs } = progress;
  return (
    <div className="progress">
      <progress max={Math.max(1, runs)} value={done} aria-label="Runs that are done" />{" "}
      <span>
        {progress.queue_position !== null
          ? `number ${progress.queue_position} of the queue`
          : `run ${Math.min(done + 1, runs)} of ${runs}`}
        {(progress.points ?? 0) > 1 && `, ${progress.points_done} of ${progress.points} points done`}
        {progress.stage && `: ${progress.stage}`}
        {progress.flows > 0 && `, ${progress.flows_finished} of ${progress.flows} flows`}
        {progress.flows_failed > 0 && `, ✕ ${progress.flows_failed} failed`}
        {progress.left_s !== null && `; about ${roughly(progress.left_s)} left`}
      </span>
    </div>
  );
}
