/** What of a result document is drawn as bars: a value with its interval for every scheme. */

import type { ResultDocument } from "./types";
import { type SchemeStyle, stylesOf } from "../parts/schemes";
import { digits } from "../parts/units";

export interface Bar {
  label: string;
  style: SchemeStyle;
  value: number;
  interval: readonly [number, number] | null;
  /** Whether its runs were limited by the processor or disturbed: no conclusions from it. */
  isDoubtful: boolean;
}

export interface Measure {
  name: string;
  /** Whether less is better. */
  less: boolean;
  format: (value: number) => string;
  bars: Bar[];
}

/** Return a bar in words: `caps 53.0 ms (45.1 ms to 60.2 ms)`. */
export const barWords = (bar: Bar, format: (value: number) => string): string =>
  `${bar.label} ${format(bar.value)}` +
  (bar.interval ? ` (${format(bar.interval[0])} to ${format(bar.interval[1])})` : "");

const milliseconds = (value: number): string => `${digits(value)} ms`;
const megabits = (value: number): string => `${digits(value)} Mbit/s`;

/** Return the measures that the document has a figure for. */
export function measures(document: ResultDocument): Measure[] {
  const rows = Object.entries(document.schemes ?? {});
  const styleOf = stylesOf(document.schemes ?? {});
  const of = (
    name: string,
    less: boolean,
    format: (value: number) => string,
    read: (
      scheme: (typeof rows)[number][1],
    ) => readonly [number | null | undefined, [number, number] | null | undefined],
  ): Measure => ({
    name,
    less,
    format,
    bars: rows.flatMap(([label, scheme]) => {
      const [value, interval] = read(scheme);
      if (value == null) return [];
      return [
        {
          label,
          style: styleOf(label),
          value,
          interval: interval ?? null,
          isDoubtful: scheme.cpu_limited || scheme.disturbed === true,
        },
      ];
    }),
  });
  return [
    of("Short flows: mean completion time", true, milliseconds, ({ short }) => [
      short?.afct_ms,
      short?.afct_ci_ms,
    ]),
    of("Short flows: p99 of the completion time", true, milliseconds, ({ short }) =>
      short?.p99_shown ? [short.p99_ms, short.p99_ci_ms] : [null, null],
    ),
    of("Long flows: goodput together", false, megabits, ({ long }) => [
      long?.goodput_mbps,
      long?.goodput_ci_mbps,
    ]),
  ].filter((measure) => measure.bars.length > 0);
}
