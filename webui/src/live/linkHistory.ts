/** What each link carried over the last minute, a point a sample. */

import type { LinkLoadView, LoadView } from "../api/schema";
import type { LinksSample } from "../api/types";

export const KEPT_S = 60;

export interface LinkPoint {
  /** Time of the chart: Unix seconds, or of a simulated run. */
  at: number;
  /** Unix seconds of the sample. */
  sampledAt: number;
  up: boolean;
  rate_kbps: number | null;
  ab: LoadView | null;
  ba: LoadView | null;
}

export class LinkHistory {
  readonly #points = new Map<string, LinkPoint[]>();

  /** Add a sample, whose points are at *at* of the chart's time. */
  take(sample: LinksSample, at = sample.at): void {
    const reported = new Set<string>();
    for (const link of sample.links) {
      reported.add(link.name);
      this.#take(link, sample.at, at);
    }
    for (const name of this.#points.keys()) if (!reported.has(name)) this.#points.delete(name);
  }

  #take(link: LinkLoadView, sampledAt: number, at: number): void {
    let points = this.#points.get(link.name);
    if (!points) this.#points.set(link.name, (points = []));
    const last = points.at(-1);
    if (last?.at === at) return; // sent again after a reconnect
    if (last && last.at > at) points.length = 0; // the clock was set back, or a simulated run begins again
    points.push({ at, sampledAt, up: link.up, rate_kbps: link.rate_kbps, ab: link.ab, ba: link.ba });
    const oldest = sampledAt - KEPT_S;
    let gone = 0;
    while (gone < points.length && (points[gone]?.sampledAt ?? sampledAt) < oldest) gone += 1;
    if (gone > 0) points.splice(0, gone);
  }

  /** Return the points of *link*, oldest first. */
  of(link: string): readonly LinkPoint[] {
    return this.#points.get(link) ?? [];
  }
}
