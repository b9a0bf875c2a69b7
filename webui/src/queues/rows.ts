/** Queues of ports, from the loads of links: what waits, is sent and is dropped in each queue now. */

import type { FabricView, QueuesView } from "../api/schema";
import type { LinksSample } from "../api/types";
import type { Series } from "../charts/TimeChart";
import { linkWays } from "../fabric/layout";
import type { LinkHistory, LinkPoint } from "../live/linkHistory";
import { natural } from "../parts/order";

export interface PortQueues {
  /** Of this port and direction alone. */
  key: string;
  /** null where only the port is known. */
  link: string | null;
  /** `l1 → s1`, or the names of switch and port. */
  direction: string;
  /** Queue 0, which is served first, comes first; null: not reported. */
  queues: {
    queue: number;
    waiting_packets: number;
    bits_per_s: number | null;
    dropped_per_s: number | null;
  }[];
}

/** Return the same from totals, for ports whose links report nothing: waiting packets only. */
export function waitingOnly(view: QueuesView): PortQueues[] {
  const rows = view.switches.flatMap((switchView) =>
    switchView.ports.map((port) => ({
      key: `${switchView.switch} ${port.name}`,
      link: null,
      direction: portWords(switchView.switch, port.name),
      queues: port.counters.map(({ queue, waiting_packets }) => ({
        queue,
        waiting_packets,
        bits_per_s: null,
        dropped_per_s: null,
      })),
    })),
  );
  return inOrder(rows);
}

/** Return a port's name, behind its switch's where that is no part of it: each switch may have an `eth1`. */
const portWords = (of: string, port: string): string => (port.startsWith(of) ? port : `${of} ${port}`);

/** Return directions that report their queues, those with most waiting first, then by name. */
export function portQueues(sample: LinksSample, fabric: FabricView | undefined): PortQueues[] {
  const rows: PortQueues[] = [];
  for (const link of sample.links) {
    const ways = linkWays(link.name, fabric);
    for (const side of ["ab", "ba"] as const) {
      const queues = link[side]?.queues;
      if (!queues?.length) continue;
      rows.push({ key: `${link.name} ${side}`, link: link.name, direction: ways[side], queues });
    }
  }
  return inOrder(rows);
}

function inOrder(rows: PortQueues[]): PortQueues[] {
  return rows
    .map((row) => ({ row, waits: waiting(row) }))
    .sort((left, right) => right.waits - left.waits || natural(left.row.direction, right.row.direction))
    .map(({ row }) => row);
}

export const waiting = (port: PortQueues): number =>
  port.queues.reduce((sum, queue) => sum + queue.waiting_packets, 0);
export const dropped = (port: PortQueues): number =>
  port.queues.reduce((sum, queue) => sum + (queue.dropped_per_s ?? 0), 0);

/**
 * Return the packets that waited at the *most* ports whose queues were longest in *history*, a series a port, by name,
 * without ports whose queues were empty. All have the times of the link that has been known longest.
 */
export function fullest(
  sample: LinksSample,
  history: LinkHistory,
  fabric: FabricView | undefined,
  most: number,
): Series[] {
  const known = sample.links.map((link) => ({
    ways: linkWays(link.name, fabric),
    points: history.of(link.name),
  }));
  const longest = known.reduce<readonly LinkPoint[]>(
    (longest, { points }) => (points.length > longest.length ? points : longest),
    [],
  );
  const times = longest.map(({ at }) => at);
  const ports = known.flatMap(({ ways, points }) =>
    (["ab", "ba"] as const).map((side) => ({
      name: ways[side],
      peak: peakOf(points, side),
      points,
      side,
    })),
  );
  return ports
    .filter(({ peak }) => peak > 0)
    .sort((left, right) => right.peak - left.peak || byName(left, right))
    .slice(0, most)
    .sort(byName)
    .map(({ name, points, side }) => {
      const waited = new Map(points.map((point) => [point.at, point[side]?.queued_packets ?? null]));
      return { name, points: times.map((time) => [time, waited.get(time) ?? null] as const) };
    });
}

function peakOf(points: readonly LinkPoint[], side: "ab" | "ba"): number {
  let peak = 0;
  for (const point of points) peak = Math.max(peak, point[side]?.queued_packets ?? 0);
  return peak;
}

const byName = (left: { name: string }, right: { name: string }): number => natural(left.name, right.name);
