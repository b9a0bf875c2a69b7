/** What a step begins, on switches or in simulation: its scheme over `small`'s fabric, with as many long flows as the recordings have. */

import type { Kind } from "../experiments/submission";
import type { SchemeName } from "./recordings";

/** So that three long flows share four paths, and short ones come one by one for a quarter of a minute. */
const FLOWS = {
  "workload.long_flows.number": 3,
  "workload.flows.count": 45,
  "workload.flows.arrivals.rate_per_s": 3,
};

/** Return the body of `POST /experiments`. */
export function liveRun(scheme: SchemeName, kind: Kind): Record<string, unknown> {
  const run = { preset: "small", name: "tour", schemes: [scheme], set: FLOWS };
  return kind === "simulation" ? { ...run, kind } : run;
}
