/** Flows as the stream reports them: the newest of each, and what each did sample by sample. */

import type { LiveFlow } from "../api/schema";
import type { FlowsSample } from "../api/types";

export const KEPT_S = 60;
/** Flows whose steps are kept; those reported longest ago go first. */
export const KEPT_FLOWS = 2_000;

/** What a flow did in one sample. */
export interface FlowMoment {
  at: number;
  paths: Record<string, number>;
  lost: number;
  recovered: number;
}

export interface FlowTrace {
  flow: LiveFlow;
  moments: FlowMoment[];
}

export class FlowHistory {
  /** In the order of their last report, oldest first. */
  readonly #traces = new Map<number, FlowTrace>();
  #newestAt = 0;

  get newestAt(): number {
    return this.#newestAt;
  }

  take(sample: FlowsSample): void {
    if (sample.at === this.#newestAt) return; // sent again after a reconnect
    if (sample.at < this.#newestAt) this.#traces.clear(); // the controller's clock was set back
    this.#newestAt = sample.at;
    for (const flow of sample.flows) {
      const before = this.#traces.get(flow.id);
      const moments = before?.moments ?? [];
      moments.push({
        at: sample.at,
        paths: flow.paths_now,
        // What was lost before we looked does not count.
        lost: before ? Math.max(0, flow.lost - before.flow.lost) : 0,
        recovered: before ? Math.max(0, flow.recovered - before.flow.recovered) : 0,
      });
      while ((moments[0]?.at ?? sample.at) < sample.at - KEPT_S) moments.shift();
      this.#traces.delete(flow.id);
      this.#traces.set(flow.id, { flow, moments });
    }
    for (const id of this.#traces.keys()) {
      if (this.#traces.size <= KEPT_FLOWS) break;
      this.#traces.delete(id);
    }
  }

  trace(id: number): FlowTrace | undefined {
    return this.#traces.get(id);
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
