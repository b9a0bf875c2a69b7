/** Completion times by scheme and size class, of flows that agents saw from first to last packet. */

import { mean, quantileSorted } from "d3-array";
import type { LiveFlow } from "../api/schema";
import type { EventHead } from "../api/types";
import { carriesData } from "../paths/shares";

export interface SizeClass {
  name: string;
  /** Payload in bytes, from (inclusive) and to (exclusive). */
  from: number;
  to: number;
}

/** Classes of the literature; short flows are those below 100 kB. */
export const SIZE_CLASSES: readonly SizeClass[] = [
  { name: "up to 10 kB", from: 0, to: 10_000 },
  { name: "10 to 100 kB", from: 10_000, to: 100_000 },
  { name: "100 kB to 1 MB", from: 100_000, to: 1_000_000 },
  { name: "1 MB and more", from: 1_000_000, to: Number.POSITIVE_INFINITY },
];

/** A scheme and since when it was in force (Unix seconds). */
export interface SchemeInterval {
  from: number;
  scheme: string;
}

/**
 * Return the intervals during which each scheme was in force, oldest first. *events*: of the topic scheme, without a
 * gap from *since* on (Unix seconds); *now*: the scheme in force, unknown before the first event.
 */
export function schemeIntervals(
  events: readonly EventHead[],
  now: string | null,
  since = 0,
): SchemeInterval[] {
  const intervals = events
    .filter((event) => event.kind === "scheme-changed")
    .map((event) => ({ from: event.at, scheme: String(event["scheme"]) }))
    .sort((left, right) => left.from - right.from);
  return intervals.length === 0 && now !== null ? [{ from: since, scheme: now }] : intervals;
}

/** Return the scheme that was in force throughout a flow's life, null if it changed meanwhile or is not known. */
export function schemeOf(flow: LiveFlow, known: readonly SchemeInterval[]): string | null {
  let index = known.length - 1;
  while (index >= 0 && (known[index]?.from ?? 0) > flow.started_at) index -= 1;
  const next = known[index + 1];
  if (index < 0 || (next && next.from < flow.last_at)) return null;
  return known[index]?.scheme ?? null;
}

export interface Group {
  scheme: string;
  sizeClass: SizeClass;
  /** Completion times in seconds, shortest first. */
  times: number[];
}

/** Return ended flows by scheme and size class, schemes in the order in which they were in force. */
export function groups(flows: readonly LiveFlow[], known: readonly SchemeInterval[]): Group[] {
  const byName = new Map<string, Group>();
  for (const flow of flows) {
    if (flow.state !== "ended" || flow.bytes === 0 || !carriesData(flow)) continue;
    const scheme = schemeOf(flow, known);
    const sizeClass = SIZE_CLASSES.find((range) => flow.bytes >= range.from && flow.bytes < range.to);
    const time = flow.last_at - flow.started_at;
    if (scheme === null || !sizeClass || time <= 0) continue;
    const key = `${scheme} ${sizeClass.name}`;
    let group = byName.get(key);
    if (!group) byName.set(key, (group = { scheme, sizeClass, times: [] }));
    group.times.push(time);
  }
  const order = [...new Set(known.map((interval) => interval.scheme))];
  for (const group of byName.values()) group.times.sort((left, right) => left - right);
  return [...byName.values()].sort(
    (left, right) =>
      SIZE_CLASSES.indexOf(left.sizeClass) - SIZE_CLASSES.indexOf(right.sizeClass) ||
      order.indexOf(left.scheme) - order.indexOf(right.scheme),
  );
}

/** A 99th percentile of fewer flows is their maximum. */
export const LEAST_FOR_P99 = 100;

export function figures(times: readonly number[]): {
  n: number;
  mean: number;
  p50: number;
  p99: number | null;
} {
  return {
    n: times.length,
    mean: mean(times) ?? 0,
    p50: quantileSorted(times as number[], 0.5) ?? 0,
    p99: times.length >= LEAST_FOR_P99 ? (quantileSorted(times as number[], 0.99) ?? 0) : null,
  };
}

/**
 * Return the steps of the empirical distribution: (time, share of the flows that had ended by then), at most *most* of
 * them. *flowCount*: how many there were with those that failed, so that shares stay below one where any has.
 */
export function distribution(
  times: readonly number[],
  flowCount = times.length,
  most = 300,
): [number, number][] {
  const stride = Math.max(1, Math.ceil(times.length / most));
  const points: [number, number][] = [];
  times.forEach((time, index) => {
    // There is no place for 0 on a logarithmic axis: what took no time counts from the first point on.
    if (time > 0 && ((index + 1) % stride === 0 || index === times.length - 1))
      points.push([time, (index + 1) / flowCount]);
  });
  return points;
}

/** Return the goodput of the long flows (bit/s) that are active now, added up. */
export function longGoodput(flows: readonly LiveFlow[]): { flows: number; bitsPerS: number } {
  const long = flows.filter(
    (flow) => flow.traffic_class === "long" && flow.state === "active" && carriesData(flow),
  );
  return { flows: long.length, bitsPerS: long.reduce((sum, flow) => sum + flow.bits_per_s, 0) };
}
