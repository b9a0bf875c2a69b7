/** Flows as the stream reports them: the newest of each, and what each did sample by sample. */

import type { LiveFlow } from "../api/schema";
import type { FlowsSample } from "../api/types";

const KEPT_S = 60;
/** Flows whose steps are kept; those reported longest ago go first. */
export const KEPT_FLOWS = 2_000;

/** What a flow did in one sample. */
export interface FlowMoment {
  at: number;
  paths: Record<string, number>;
}

export interface FlowTrace {
  flow: LiveFlow;
  moments: FlowMoment[];
}

export class FlowHistory {
  /** In the order of their last report, oldest first. */
  readonly #traces = new Map<number, FlowTrace>();
  #newestAt = 0;

  take(sample: FlowsSample): void {
    if (sample.at === this.#newestAt) return; // sent again after a reconnect
    if (sample.at < this.#newestAt) this.#traces.clear(); // the controller's clock was set back
    this.#newestAt = sample.at;
    for (const flow of sample.flows) {
      const moments = this.#traces.get(flow.id)?.moments ?? [];
      moments.push({ at: sample.at, paths: flow.paths_now });
      while ((moments[0]?.at ?? sample.at) < sample.at - KEPT_S) moments.shift();
      this.#traces.delete(flow.id);
      this.#traces.set(flow.id, { flow, moments });
    }
    for (const id of this.#traces.keys()) {
      if (this.#traces.size <= KEPT_FLOWS) break;
      this.#traces.delete(id);
    }
  }

  /** Return flows reported within the last *seconds*, newest number first. */
  recent(seconds: number): FlowTrace[] {
    const since = this.#newestAt - seconds;
    const traces: FlowTrace[] = [];
    for (const trace of this.#traces.values())
      if ((trace.moments.at(-1)?.at ?? 0) >= since) traces.push(trace);
    return traces.sort((left, right) => right.flow.id - left.flow.id);
  }
}
