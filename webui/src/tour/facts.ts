/** What the tour says of a recorded window: counted from its hops, so that words and pictures agree. */

import { natural } from "../parts/order";
import { released } from "../replay/releases";
import type { Hop, Packet, Trace } from "../replay/trace";

export type FlowClass = "short" | "long";

/** A stretch of a window, ps from its begin. */
export interface Interval {
  from: number;
  to: number;
}

interface Crossing {
  hop: Hop;
  packet: Packet;
  from: string;
  to: string;
}

/** Return data of *flowClass* that leaves offered upwards, bytes by the switch they went to; 0 for one without. */
export function loadByPath(trace: Trace, flowClass: FlowClass): ReadonlyMap<string, number> {
  const loads = new Map(uppers(trace).map((name) => [name, 0]));
  for (const { packet, to } of upwards(trace, flowClass)) {
    loads.set(to, (loads.get(to) ?? 0) + packet.bytes);
  }
  return loads;
}

/**
 * Return data that was sent in the window and came to its host's agent: packets, and those that a packet of their flow
 * overtook, sent later.
 */
export function order(trace: Trace, flowClass: FlowClass): { packets: number; behind: number } {
  const sentAt = new Map<Packet, number>();
  for (const { hop, packet, from } of crossings(trace, flowClass)) {
    if (isHost(from)) sentAt.set(packet, hop.offered);
  }
  const newest = new Map<number, { sent: number; number: number }>();
  let behind = 0;
  const came = arrivals(trace, flowClass).filter(({ packet }) => sentAt.has(packet));
  for (const { packet } of came) {
    const id = packet.flow?.id ?? -1;
    const place = { sent: sentAt.get(packet)!, number: packet.number };
    const before = newest.get(id);
    const isBehind =
      before !== undefined &&
      (place.sent === before.sent ? place.number < before.number : place.sent < before.sent);
    if (isBehind) behind += 1;
    else newest.set(id, place);
  }
  return { packets: came.length, behind };
}

/** Return data packets that an agent handed to its host before they had come, or that never came: rebuilt ones. */
export function rebuilt(trace: Trace, flowClass: FlowClass): number {
  return released(trace).filter((release) => release.rebuilt && release.flow.trafficClass === flowClass)
    .length;
}

/** Return how many packets of *kind* hosts sent for flows of *flowClass*. */
export function sent(trace: Trace, flowClass: FlowClass, kind: Packet["kind"]): number {
  return crossings(trace, flowClass).filter(({ packet, from }) => packet.kind === kind && isHost(from))
    .length;
}

/** Return how many data packets hosts sent that they had sent before in the window. */
export function retransmitted(trace: Trace, flowClass: FlowClass): number {
  const all = crossings(trace, flowClass).filter(
    ({ packet, from }) => packet.kind === "data" && isHost(from),
  );
  return all.length - new Set(all.map(({ packet }) => `${packet.flow?.id} ${packet.number}`)).size;
}

/** Return data that hosts got, bits a second of the window. */
export function delivered(trace: Trace, flowClass: FlowClass): number {
  const bytes = arrivals(trace, flowClass).reduce((sum, { packet }) => sum + packet.bytes, 0);
  return (bytes * 8e12) / trace.lengthPs;
}

/** Return how long data waited at a leaf's port to a spine on average, seconds. */
export function waiting(trace: Trace, flowClass: FlowClass): number {
  const waits = upwards(trace, flowClass).flatMap(({ hop }) =>
    hop.left === null || hop.dropped ? [] : [hop.left - hop.offered],
  );
  return waits.length === 0 ? 0 : waits.reduce((sum, wait) => sum + wait, 0) / waits.length / 1e12;
}

/** Return the bytes that hosts put on their links, by kind. */
export function bytesByKind(trace: Trace): ReadonlyMap<Packet["kind"], number> {
  const bytes = new Map<Packet["kind"], number>();
  for (const { packet, from } of crossings(trace)) {
    if (isHost(from)) bytes.set(packet.kind, (bytes.get(packet.kind) ?? 0) + packet.bytes);
  }
  return bytes;
}

/** Return when the leaf of that number was in a mode. */
export function inMode(trace: Trace, leaf: number, on: boolean): Interval[] {
  const changes = trace.modes.filter((change) => change.leaf === leaf);
  return changes.flatMap((change, place) =>
    change.on === on ? [{ from: change.at, to: changes[place + 1]?.at ?? trace.lengthPs }] : [],
  );
}

/** Return the length of *intervals*, seconds. */
export function lengthOf(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, { from, to }) => sum + to - from, 0) / 1e12;
}

/** Return how many paths a long flow was sent over in *intervals*: the mean of those flows that sent then. */
export function pathsPerFlow(trace: Trace, intervals: readonly Interval[]): number {
  const used = new Map<number, Set<string>>();
  for (const { packet, to } of within(upwards(trace, "long"), intervals)) {
    const id = packet.flow?.id ?? -1;
    used.set(id, (used.get(id) ?? new Set()).add(to));
  }
  return used.size === 0 ? 0 : [...used.values()].reduce((sum, paths) => sum + paths.size, 0) / used.size;
}

/** Return the share of paths on which leaves sent no data of long flows in *intervals*, 0 to 1. */
export function clearPaths(trace: Trace, intervals: readonly Interval[]): number {
  const all = uppers(trace);
  const used = new Set(within(upwards(trace, "long"), intervals).map(({ to }) => to));
  return all.length === 0 ? 0 : (all.length - used.size) / all.length;
}

function within(crossed: readonly Crossing[], intervals: readonly Interval[]): Crossing[] {
  return crossed.filter(({ hop }) =>
    intervals.some(({ from, to }) => from <= hop.offered && hop.offered < to),
  );
}

function crossings(trace: Trace, flowClass?: FlowClass): Crossing[] {
  return trace.hops.flatMap((hop) => {
    const [packet, link] = [trace.packets[hop.packet], trace.links[hop.link]];
    if (!packet || !link) return [];
    if (flowClass !== undefined && packet.flow?.trafficClass !== flowClass) return [];
    return [{ hop, packet, from: link.from, to: link.to }];
  });
}

function upwards(trace: Trace, flowClass: FlowClass): Crossing[] {
  return crossings(trace, flowClass).filter(
    ({ packet, from, to }) => packet.kind === "data" && from.startsWith("l") && to.startsWith("s"),
  );
}

/** Return data that came to its host, in the order in which it came. */
function arrivals(trace: Trace, flowClass: FlowClass): Crossing[] {
  return crossings(trace, flowClass)
    .filter(({ hop, packet, to }) => packet.kind === "data" && isHost(to) && hop.arrived !== null)
    .sort((left, right) => (left.hop.arrived ?? 0) - (right.hop.arrived ?? 0));
}

function uppers(trace: Trace): string[] {
  const names = new Set(trace.links.map(({ to }) => to).filter((name) => name.startsWith("s")));
  return [...names].sort(natural);
}

const isHost = (name: string): boolean => name.startsWith("h");
