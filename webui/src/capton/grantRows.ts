/** Grants over time: polled views become bars from when a flow was first granted (or waited) until it no longer was. */

import type { CaptonFlow, CaptonView } from "../api/schema";

export const KEPT_S = 30;
const KEPT_FLOWS = 60;

export interface Span {
  from: number;
  to: number;
  state: CaptonFlow["state"];
  /** Highest rate in bit/s. */
  rate: number;
}

export interface Row {
  key: string;
  name: string;
  spans: Span[];
}

/** Return *rows* with what *view* has at *now* (s), as new rows without those that ended long ago. */
export function withView(rows: readonly Row[], view: CaptonView, now: number, everyS: number): Row[] {
  const known = new Map(rows.map((row) => [row.key, row]));
  for (const flow of view.flows) {
    // With its destination: numbers begin again, as when the scheme is left and taken again.
    const key = `${flow.source} ${flow.destination} ${flow.flow}`;
    const row = known.get(key) ?? {
      key,
      name: `${flow.source} → ${flow.destination} #${flow.flow}`,
      spans: [],
    };
    const last = row.spans.at(-1);
    const goesOn = last && last.state === flow.state && now - last.to <= 2.5 * everyS;
    const spans = goesOn
      ? [...row.spans.slice(0, -1), { ...last, to: now, rate: Math.max(last.rate, flow.rate_bps) }]
      : [
          ...row.spans,
          {
            from: Math.max(now - flow.asked_s_ago, last?.to ?? 0, now - KEPT_S),
            to: now,
            state: flow.state,
            rate: flow.rate_bps,
          },
        ];
    known.set(key, { ...row, spans });
  }
  const since = now - KEPT_S;
  return [...known.values()]
    .map((row) => ({ ...row, spans: row.spans.filter((span) => span.to > since) }))
    .filter((row) => row.spans.length > 0)
    .sort((left, right) => (left.spans[0]?.from ?? 0) - (right.spans[0]?.from ?? 0))
    .slice(-KEPT_FLOWS);
}
