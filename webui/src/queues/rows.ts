/** Queues of ports, from the loads of links: what waits, is sent and is dropped in each queue now. */

import type { LinksSample, QueueLoad } from "../api/types";

export interface PortQueues {
  link: string;
  /** `l1 → s1` */
  direction: string;
  /** Queue 0, which is served first, comes first. */
  queues: QueueLoad[];
}

/** Directions that tell of their queues, those with most waiting first, then by name. */
export function portQueues(sample: LinksSample): PortQueues[] {
  const rows: PortQueues[] = [];
  for (const link of sample.links) {
    const [a, b] = link.name.split("-", 2);
    for (const [load, direction] of [
      [link.ab, `${a} → ${b}`],
      [link.ba, `${b} → ${a}`],
    ] as const) {
      if (load?.queues?.length) rows.push({ link: link.name, direction, queues: load.queues });
    }
  }
  return rows.sort(
    (one, other) =>
      waiting(other) - waiting(one) || one.direction.localeCompare(other.direction, "en", { numeric: true }),
  );
}

export const waiting = (port: PortQueues): number =>
  port.queues.reduce((sum, one) => sum + one.waiting_packets, 0);
export const dropped = (port: PortQueues): number =>
  port.queues.reduce((sum, one) => sum + one.dropped_per_s, 0);
