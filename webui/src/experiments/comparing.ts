/** Two experiments side by side, as bars: each scheme's figure in both. */

import type { ComparedScheme, EstimateView, ListedExperiment } from "../api/schema";
import { type Labels, type SchemeStyle, stylesOf } from "../parts/schemes";
import { digits } from "../parts/units";
import type { Bar, Measure } from "./bars";

/** What is drawn and named of an experiment that is compared. */
export interface Side {
  id: number;
  /** Schemes by label. */
  schemes: Labels;
}

/** Return *value* with up to three digits, as shares, and ratios of them, may be small. */
export const three = (value: number): string =>
  value !== 0 && Math.abs(value) < 0.1 ? value.toPrecision(2) : digits(value);

/** Return the label of a scheme in an experiment: `caps · 12`. */
export const labelIn = (label: string, experiment: number): string => `${label} · ${experiment}`;

/** Measures that are drawn of an experiment alone, too; others are in the table. */
const DRAWN: ReadonlySet<string> = new Set(["short.afct_ms", "short.p99_ms", "long.goodput_mbps"]);

/** Return what is drawn, with two bars a scheme: one of each experiment, both in the style that it has in the first. */
export function comparedBars(schemes: readonly ComparedScheme[], sides: readonly [Side, Side]): Measure[] {
  const byTitle = new Map<string, Measure>();
  const styleOf = stylesOf(sides[0].schemes);
  for (const { label, cpu_limited, disturbed, measures } of schemes) {
    for (const { name, title, unit, better, a, b } of measures) {
      if (!DRAWN.has(name)) continue;
      const measure: Measure = byTitle.get(title) ?? {
        name: title,
        less: better === "less",
        format: (value) => `${digits(value)} ${unit}`,
        bars: [],
      };
      byTitle.set(title, measure);
      measure.bars.push(
        ...[a, b].map((estimate, side) => {
          const isDoubtful = cpu_limited[side] === true || disturbed[side] === true;
          return bar(estimate, label, sides[side] as Side, isDoubtful, styleOf(label));
        }),
      );
    }
  }
  return [...byTitle.values()];
}

const bar = (
  { mean, low, high }: EstimateView,
  label: string,
  side: Side,
  isDoubtful: boolean,
  style: SchemeStyle,
): Bar => ({
  label: labelIn(label, side.id),
  style,
  value: mean,
  interval: low === null || high === null ? null : [low, high],
  isDoubtful,
});

/** The choice that lists older experiments, too. */
export const OLDER = "older";

/**
 * Return the choices of experiments to compare with *own*: those *listed* that have finished, the *chosen* one even if
 * it is not listed, as an address may name any, and OLDER where the list goes on.
 */
export function othersThan(
  own: number,
  listed: readonly Pick<ListedExperiment, "id" | "name" | "state">[],
  chosen: string,
  goesOn: boolean,
): { value: string; label: string }[] {
  const others = listed
    .filter(({ id, state }) => id !== own && state === "finished")
    .map(({ id, name }) => ({ value: String(id), label: `${id}: ${name}` }));
  const isMissing = chosen !== "" && !others.some(({ value }) => value === chosen);
  return [
    ...(isMissing ? [{ value: chosen, label: `experiment ${chosen}` }] : []),
    ...others,
    ...(goesOn ? [{ value: OLDER, label: "list older ones …" }] : []),
  ];
}
