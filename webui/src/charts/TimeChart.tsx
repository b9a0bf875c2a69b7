import { useId, useMemo, useRef } from "react";
import { duration } from "../parts/units";
import { short } from "./ticks";
import { UPlotChart } from "./UPlotChart";
import styles from "./charts.module.css";

export interface Series {
  name: string;
  /** Time (seconds of any clock) and value, oldest first; null: not known. All series have the same times. */
  points: readonly (readonly [number, number | null])[];
}

interface Props {
  title: string;
  series: readonly Series[];
  /** What is shown, in seconds of that clock. */
  from: number;
  to: number;
  /** The value axis reaches at least this. */
  atLeast: number;
  format: (value: number) => string;
  height?: number;
}

/** Pixels of a letter, or a little more. */
const LETTER = 7.6;
const DASHES: readonly number[][] = [[], [6, 3], [2, 3], [9, 3, 2, 3]];

/** Return how long ago *time* (at most 0, in seconds) was. */
const ago = (time: number): string =>
  `−${time >= -60 ? `${Number((-time).toPrecision(3))} s` : duration(-time)}`;

/** Return what a chart is made anew for: not its span, which grows with each sample at the begin of a simulated run. */
export const structureOf = ({ series, atLeast }: Props): string =>
  `${series.map((curve) => curve.name).join()} ${atLeast}`;

/** Draw values over the last seconds, a line a series. */
export function TimeChart(chart: Props) {
  const { title, series, from, to, atLeast, format, height = 130 } = chart;
  const heading = useId();
  const begin = useRef(0);
  begin.current = from - to;
  const data = useMemo(
    () =>
      [
        (series[0]?.points ?? []).map(([time]) => time - to),
        ...series.map((curve) => curve.points.map(([, value]) => value)),
      ] as [number[], ...(number | null)[][]],
    [series, to],
  );
  return (
    <figure aria-labelledby={heading}>
      <figcaption id={heading} className={styles["title"]}>
        {title}
      </figcaption>
      <UPlotChart
        data={data}
        structure={structureOf(chart)}
        height={height}
        options={({ colour, scale, axis }) => ({
          scales: {
            x: { time: false, range: () => [begin.current, 0] },
            y: { range: (_, __, high) => [0, Math.max(atLeast, high) * 1.08] },
          },
          axes: [
            {
              ...axis,
              size: 28 * scale,
              space: 70 * scale,
              values: (_, splits) => splits.map((split) => (split === 0 ? "now" : ago(split))),
            },
            {
              ...axis,
              size: (_: unknown, labels: string[] | null) =>
                (Math.max(0, ...(labels ?? []).map((label) => label.length)) * LETTER + 14) * scale,
              space: 34 * scale,
              values: (_, splits) => splits.map((split) => short(format(split))),
            },
          ],
          series: [
            { label: "time", value: (_, value) => (value == null ? "–" : ago(value)) },
            ...series.map((curve, index) => ({
              label: curve.name,
              stroke: colour(`--series-${index}`),
              dash: DASHES[index % DASHES.length] ?? [],
              width: 1.8 * scale,
              points: { show: false },
              value: (_: unknown, value: number | null) => (value == null ? "–" : format(value)),
            })),
          ],
          cursor: { y: false, drag: { x: false, y: false } },
        })}
      />
    </figure>
  );
}
