/** Which runs on switches were recorded packet by packet, and in which window. */

import type { Experiment, ResultDocument } from "./types";

type Run = Pick<NonNullable<Experiment["runs"]>[number], "label" | "repeat" | "recording">;

export interface RecordedRun {
  label: string;
  /** The window: "412 ms from 180 ms on". */
  words: string;
}

/** Return the first runs of schemes that have a recording. */
export function recordedRuns(runs: readonly Run[]): RecordedRun[] {
  return runs.flatMap(({ label, repeat, recording }) => {
    if (!recording || repeat !== 0) return [];
    const { from_ms: from, for_ms: length, cut } = recording;
    const full = cut ? ", when the recording was full" : "";
    return [{ label, words: `${Math.round(length)} ms from ${Math.round(from)} ms on${full}` }];
  });
}

/** Return the notes of a result that say why a run was not recorded. */
export const notRecorded = (document: ResultDocument | null): string[] =>
  (document?.notices ?? []).filter((notice) => notice.includes("was not recorded packet by packet"));
