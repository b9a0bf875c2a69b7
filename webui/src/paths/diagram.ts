/** The paths between two hosts as columns of hops: nodes and edges with the share of packets on each. */

import { group } from "d3-array";
import type { PathView } from "../api/schema";
import { natural } from "../parts/order";
import { type Counts, total } from "./shares";

export interface Node {
  /** Column and name: a switch may be in two columns of a path that goes up and down. */
  key: string;
  name: string;
  host: boolean;
  column: number;
  place: number;
  members: number;
}

export interface Edge {
  from: string;
  to: string;
  /** The column of `from`. */
  column: number;
  share: number;
}

export function diagram(
  source: string,
  destination: string,
  paths: readonly Pick<PathView, "stamp" | "switches">[],
  counts: Counts,
): { nodes: Node[]; edges: Edge[]; columns: number; rows: number } {
  const all = total(counts);
  const columns: string[][] = [];
  const edges = new Map<string, Edge>();
  // A stamp names the turn; paths that turn at the same switch share its packets evenly.
  const withStamp = group(paths, (path) => path.stamp);
  for (const path of paths) {
    const hops = [source, ...path.switches, destination];
    const share =
      all > 0 ? (counts[String(path.stamp)] ?? 0) / all / (withStamp.get(path.stamp)?.length ?? 1) : 0;
    hops.forEach((hop, column) => {
      const members = (columns[column] ??= []);
      if (!members.includes(hop)) members.push(hop);
      const next = hops[column + 1];
      if (next === undefined) return;
      const [from, to] = [`${column} ${hop}`, `${column + 1} ${next}`];
      const edge = edges.get(`${from}>${to}`) ?? { from, to, column, share: 0 };
      edge.share += share;
      edges.set(`${from}>${to}`, edge);
    });
  }
  const nodes = columns.flatMap((members, column) =>
    members.sort(natural).map((name, place) => ({
      key: `${column} ${name}`,
      name,
      host: column === 0 || column === columns.length - 1,
      column,
      place,
      members: members.length,
    })),
  );
  return {
    nodes,
    edges: [...edges.values()],
    columns: columns.length,
    rows: Math.max(0, ...columns.map((members) => members.length)),
  };
}
