/** Shares of paths: of a flow, and of all flows of a class. Paths are named by their stamps, as text. */

import type { FlowTrace } from "../live/flowHistory";
import type { FlowStep, LiveFlow } from "../api/schema";

export type Counts = Readonly<Record<string, number>>;

export function total(counts: Counts): number {
  return Object.values(counts).reduce((sum, packets) => sum + packets, 0);
}

/** Return packets by stamp, added up. */
export function added(counts: Iterable<Counts>): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const packetsByStamp of counts)
    for (const [stamp, packets] of Object.entries(packetsByStamp)) sum[stamp] = (sum[stamp] ?? 0) + packets;
  return sum;
}

/** Return shares (0..1) by stamp; all 0 where nothing was counted. */
export function shares(counts: Counts): Record<string, number> {
  const all = total(counts);
  return Object.fromEntries(
    Object.entries(counts).map(([stamp, packets]) => [stamp, all > 0 ? packets / all : 0]),
  );
}

/**
 * Return the number of paths that a flow would use evenly to be as spread as this: the inverse of the sum of squared
 * shares (Simpson's index; Hill number of order 2). 1: one path; N: evenly over N. 0 where nothing was counted.
 */
export function effectivePaths(counts: Counts): number {
  const all = total(counts);
  if (all === 0) return 0;
  return 1 / Object.values(counts).reduce((sum, packets) => sum + (packets / all) ** 2, 0);
}

/** Return true if a flow carries data: the reverse direction of a TCP connection is a flow of bare acknowledgements. */
export function carriesData(flow: Pick<LiveFlow, "bytes" | "packets">): boolean {
  return flow.bytes >= 200 * flow.packets;
}

/** Return each class's packets by stamp since *since*, of flows that carry data and that *matches* accepts. */
export function classCounts(
  traces: readonly FlowTrace[],
  since: number,
  matches: (trace: FlowTrace) => boolean = () => true,
): Map<string, Record<string, number>> {
  const byClass = new Map<string, Record<string, number>[]>();
  for (const trace of traces) {
    if (!carriesData(trace.flow) || !matches(trace)) continue;
    const counts = trace.moments.filter((moment) => moment.at > since).map((moment) => moment.paths);
    const known = byClass.get(trace.flow.traffic_class) ?? [];
    known.push(...counts);
    byClass.set(trace.flow.traffic_class, known);
  }
  return new Map([...byClass].map(([name, counts]) => [name, added(counts)]));
}

/** Return the stamp that most packets of *step* took, if at least the share *atLeast* took it; else null. */
export function mainPath(step: Pick<FlowStep, "paths">, atLeast = 0.6): string | null {
  const all = total(step.paths);
  const [stamp, packets] = Object.entries(step.paths).reduce(
    (best, entry) => (entry[1] > best[1] ? entry : best),
    ["", 0],
  );
  return all > 0 && packets / all >= atLeast ? stamp : null;
}
