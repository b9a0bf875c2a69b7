/** What of a sweep's result is drawn: each measure over the first axis, a line a scheme; further axes have charts of their own. */

import { group } from "d3-array";
import { measures, type Bar, type Measure } from "./bars";
import { type Labels, type SchemeStyle, stylesOf } from "../parts/schemes";
import type { ResultDocument, SweepDocument } from "./types";

export type Tick = string | number | boolean | null;

export interface Axis {
  label: string;
  unit: string;
}

/** A scheme's figure at one value of the axis; without a bar where it has none. */
export interface SweepPoint {
  tick: Tick;
  bar: Bar | null;
}

export interface SweepLine {
  label: string;
  style: SchemeStyle;
  points: SweepPoint[];
}

export interface SweepChartData extends Pick<Measure, "name" | "less" | "format"> {
  axis: Axis;
  /** Values of the axis, in the sweep's order. */
  ticks: Tick[];
  lines: SweepLine[];
}

/** Charts for one combination of the other axes' values, and those in words: `load = 0.3`; "" without other axes. */
export interface SweepPart {
  words: string;
  charts: SweepChartData[];
}

/** Return a value as the axis shows it. */
export const shown = (tick: Tick): string => String(tick);

/** Return an axis and its value in words: `load = 30 %`. */
export const tickWords = ({ label, unit }: Axis, tick: Tick): string =>
  `${label} = ${shown(tick)}${unit && ` ${unit}`}`;

/**
 * Return all that is drawn of a sweep, in the order of the parts of its figure for print; nothing while it has no
 * result.
 */
export function sweepParts({ sweep = [], points = [] }: SweepDocument): SweepPart[] {
  const [axis, ...others] = sweep;
  if (!axis) return [];
  const byOthers = group(points, (point) => JSON.stringify(point.at?.slice(1) ?? []));
  return [...byOthers.values()].map((ofPart) => ({
    words: others.map((other, index) => tickWords(other, ofPart[0]?.at?.[index + 1] ?? null)).join(", "),
    charts: charts(axis, ofPart),
  }));
}

/** Return why some figures of a sweep are doubtful, in words; "": none is. */
export const doubts = ({ cpu_limited, disturbed }: SweepDocument): string =>
  [cpu_limited && "the processor limited the run", disturbed && "a part of the lab ended meanwhile"]
    .filter(Boolean)
    .join(" or ");

/** Return *points* in the order in which a line goes through them: by number, where the axis has numbers. */
export function alongAxis<P extends { tick: Tick }>(points: readonly P[]): P[] {
  const numbers = points.every(({ tick }) => typeof tick === "number");
  return numbers ? [...points].sort((left, right) => Number(left.tick) - Number(right.tick)) : [...points];
}

/** Return the labels of all *points*, each with its scheme. */
export const labelsOf = (points: readonly ResultDocument[]): Labels =>
  Object.assign({}, ...[...points].reverse().map(({ schemes }) => schemes ?? {})) as Labels;

function charts(axis: Axis, points: NonNullable<SweepDocument["points"]>): SweepChartData[] {
  const ticks = points.map((point) => point.at?.[0] ?? null);
  const measured = points.map(measures);
  const kinds = new Map(measured.flat().map((measure) => [measure.name, measure]));
  const labels = labelsOf(points);
  const styleOf = stylesOf(labels);
  return [...kinds.values()].map(({ name, less, format }) => {
    const lines = Object.keys(labels).map((label) => ({
      label,
      style: styleOf(label),
      points: measured.map((ofPoint, index) => ({
        tick: ticks[index] ?? null,
        bar:
          ofPoint.find((measure) => measure.name === name)?.bars.find((bar) => bar.label === label) ?? null,
      })),
    }));
    const drawn = lines.filter((line) => line.points.some((point) => point.bar !== null));
    return { name, less, format, axis, ticks, lines: drawn };
  });
}
