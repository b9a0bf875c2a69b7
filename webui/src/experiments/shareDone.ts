import type { ProgressView } from "../api/schema";

type Done = Pick<ProgressView, "runs_done" | "runs" | "elapsed_s" | "left_s">;

/**
 * Return how much of an experiment is done, 0 to 1: its share of the estimated time, so that a single run's bar moves,
 * but never less than its share of the runs, since an estimate may rise.
 */
export function shareDone({ runs_done, runs, elapsed_s, left_s }: Done): number {
  const ofRuns = runs_done / Math.max(1, runs);
  const total = left_s === null ? 0 : elapsed_s + left_s;
  return Math.min(1, Math.max(ofRuns, total > 0 ? elapsed_s / total : 0));
}
