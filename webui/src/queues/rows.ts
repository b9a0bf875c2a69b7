/** Queues of ports, from the loads of links: what waits, is sent and is dropped in each queue now. */

import type { FabricView, QueuesView } from "../api/schema";
import type { LinksSample } from "../api/types";
import { linkEnds } from "../fabric/layout";

export interface PortQueues {
  /** null where only the port is known. */
  link: string | null;
  /** `l1 → s1`, or the port's name. */
  direction: string;
  /** Queue 0, which is served first, comes first; null: not reported. */
  queues: {
    queue: number;
    waiting_packets: number;
    bits_per_s: number | null;
    dropped_per_s: number | null;
  }[];
}

/** The same from totals, for ports whose links report nothing: what waits only. */
export function waitingOnly(view: QueuesView): PortQueues[] {
  const rows = view.switches.flatMap((switchView) =>
    switchView.ports.map((port) => ({
      link: null,
      direction: port.name,
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

/** Directions that report their queues, those with most waiting first, then by name. */
export function portQueues(sample: LinksSample, fabric: FabricView | undefined): PortQueues[] {
  const rows: PortQueues[] = [];
  for (const link of sample.links) {
    const [a, b] = linkEnds(link.name, fabric);
    for (const [load, direction] of [
      [link.ab, `${a} → ${b}`],
      [link.ba, `${b} → ${a}`],
    ] as const) {
      if (load?.queues?.length) rows.push({ link: link.name, direction, queues: load.queues });
    }
  }
  return inOrder(rows);
}

function inOrder(rows: PortQueues[]): PortQueues[] {
  return rows.sort(
    (left, right) =>
      waiting(right) - waiting(left) ||
      left.direction.localeCompare(right.direction, "en", { numeric: true }),
  );
}

export const waiting = (port: PortQueues): number =>
  port.queues.reduce((sum, queue) => sum + queue.waiting_packets, 0);
export const dropped = (port: PortQueues): number =>
  port.queues.reduce((sum, queue) => sum + (queue.dropped_per_s ?? 0), 0);
