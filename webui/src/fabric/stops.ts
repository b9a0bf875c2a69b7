/** The map is one stop of the Tab key: arrow keys move the focus between its links and hosts. */

import { group } from "d3-array";
import { type FocusEvent, type KeyboardEvent, useCallback, useMemo, useState } from "react";
import { onMap } from "../parts/focus";
import { natural } from "../parts/order";
import type { Layout, Line, Spot } from "./layout";

/** A link or a host that can have the focus, at its middle. */
export interface Stop extends Spot {
  kind: "link" | "host";
  name: string;
}

/** Return links and hosts in rows from the top, each from left to right. */
export function stopRows(lines: readonly Line[], layout: Layout): Stop[][] {
  const stops: Stop[] = [
    ...lines.map(({ name, a, b }) => ({
      kind: "link" as const,
      name,
      x: (a.x + b.x) / 2,
      y: (a.y + b.y) / 2,
    })),
    ...[...layout.hosts].map(([name, spot]) => ({ kind: "host" as const, name, ...spot })),
  ];
  const rows = group(stops, ({ y }) => Math.round(y));
  const ordered = [...rows].sort(([upper], [lower]) => upper - lower);
  return ordered.map(([, row]) =>
    row.sort((left, right) => left.x - right.x || natural(left.name, right.name)),
  );
}

/** Return where *key* leads from *from*: within its row, or to the nearest of another; undefined: nowhere. */
export function moved(rows: readonly (readonly Stop[])[], from: Stop, key: string): Stop | undefined {
  const at = rows.findIndex((row) => row.includes(from));
  const row = rows[at] ?? [];
  const index = row.indexOf(from);
  if (key === "ArrowLeft") return row[index - 1];
  if (key === "ArrowRight") return row[index + 1];
  if (key === "Home") return row[0];
  if (key === "End") return row.at(-1);
  const other = key === "ArrowUp" ? rows[at - 1] : key === "ArrowDown" ? rows[at + 1] : undefined;
  return other?.reduce((best, stop) => (Math.abs(stop.x - from.x) < Math.abs(best.x - from.x) ? stop : best));
}

type Id = Pick<Stop, "kind" | "name">;

/** Return the link or host that *target* is, or is within. */
function stopOf(target: Element): Id | undefined {
  const element = target.closest<SVGElement>("[data-link], [data-host]");
  const { link, host } = element?.dataset ?? {};
  if (link !== undefined) return { kind: "link", name: link };
  return host === undefined ? undefined : { kind: "host", name: host };
}

/**
 * Return which link or host the Tab key stops at, and handlers for the map: what had the focus last, else what is
 * *chosen*, else the first.
 */
export function useStops(lines: readonly Line[], layout: Layout, chosen: Id | undefined) {
  const rows = useMemo(() => stopRows(lines, layout), [lines, layout]);
  const [last, setLast] = useState<Id>();
  const find = (id: Id | undefined): Stop | undefined =>
    id && rows.flat().find(({ kind, name }) => kind === id.kind && name === id.name);
  const stop = find(last) ?? find(chosen) ?? rows[0]?.[0];
  const onFocus = useCallback(({ target }: FocusEvent<SVGElement>) => setLast(stopOf(target)), []);
  const onKeyDown = (event: KeyboardEvent<SVGElement>): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const from = find(stopOf(event.target as Element));
    const next = from && moved(rows, from, event.key);
    if (!from || !KEYS.has(event.key)) return;
    event.preventDefault(); // the page neither scrolls nor turns
    if (next) event.currentTarget.querySelector<SVGElement>(onMap(next.kind, next.name))?.focus();
  };
  return { stop, onFocus, onKeyDown };
}

const KEYS: ReadonlySet<string> = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]);
