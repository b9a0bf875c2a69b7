/** Where hosts and switches are drawn: a tier a row, the highest above. */

import { natural } from "../parts/order";
import type { Trace } from "./trace";

export interface Point {
  x: number;
  y: number;
}

const TIERS = ["c", "s", "a", "l", "e", "h"] as const;

/** Return the place of each node, 0 to 1 in both directions. */
export function places(trace: Trace): ReadonlyMap<string, Point> {
  const names = new Set(trace.links.flatMap((link) => [link.from, link.to]));
  const tiers = TIERS.map((tier) => [...names].filter((name) => name.startsWith(tier)).sort(natural));
  const rows = tiers.filter((row) => row.length > 0);
  const nodes = new Map<string, Point>();
  rows.forEach((row, tier) => {
    row.forEach((name, place) => {
      const y = rows.length > 1 ? tier / (rows.length - 1) : 0.5;
      nodes.set(name, { x: (place + 0.5) / row.length, y });
    });
  });
  return nodes;
}
