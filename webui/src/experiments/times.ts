/** How long an experiment took, and completion times of its short flows, by scheme. */

import type { FlowRecord } from "../api/schema";
import type { SchemeTimes } from "../fct/SchemeDistribution";
import { stylesOf } from "../parts/schemes";
import type { Experiment, ResultDocument } from "./types";

/**
 * Return the completion times of those of *records* that have ended, shortest first, and how many there are with those
 * that failed. Schemes are in the order of the document, as runs end in any order; before the last run has ended there
 * is none.
 */
export function shortFlowTimes(experiment: Experiment, records: readonly FlowRecord[]): SchemeTimes[] {
  const { schemes } = (experiment.summary ?? {}) as ResultDocument;
  const labels = new Map(experiment.runs?.map((run) => [run.id, run.label]));
  const known = new Map<string, { times: number[]; flows: number }>();
  for (const flow of records) {
    const label = labels.get(flow.run_id);
    if (label === undefined || flow.traffic_class !== "short") continue;
    const ofScheme = known.get(label) ?? { times: [], flows: 0 };
    ofScheme.flows += 1;
    if (flow.fct_s !== null) ofScheme.times.push(flow.fct_s);
    known.set(label, ofScheme);
  }
  const named =
    schemes ?? Object.fromEntries([...known.keys()].sort().map((label) => [label, { scheme: label }]));
  const styleOf = stylesOf(named);
  return Object.keys(named).flatMap((label) => {
    const { times, flows } = known.get(label) ?? { times: [], flows: 0 };
    times.sort((left, right) => left - right);
    return times.length > 0 ? [{ label, style: styleOf(label), times, flows }] : [];
  });
}

/**
 * Return how long an experiment ran, without its time in the queue, in seconds; null: it goes on, or never began. A
 * recorded experiment has had no queue.
 */
export function ranS({
  kind,
  created_at,
  started_at,
  finished_at,
}: Pick<Experiment, "created_at" | "started_at" | "finished_at"> & { kind?: Experiment["kind"] }):
  number | null {
  const began = kind === "recorded" ? created_at : started_at;
  return finished_at === null || began == null ? null : finished_at - began;
}
