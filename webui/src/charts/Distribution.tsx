import { useId, useMemo } from "react";
import uPlot from "uplot";
import { MARKER_PATHS } from "../parts/marker";
import { percent } from "../parts/units";
import { fitting, roundValues, short } from "./ticks";
import { UPlotChart } from "./UPlotChart";
import styles from "./charts.module.css";

export interface Curve {
  name: string;
  /** A CSS colour or variable (`--series-0`). */
  colour: string;
  marker: string;
  dashed?: boolean;
  /** (value, share of flows up to it), growing. */
  points: readonly (readonly [number, number])[];
}

interface Props {
  title: string;
  curves: readonly Curve[];
  /** What the horizontal axis has, and its words. */
  of: string;
  format: (value: number) => string;
  height?: number;
}

/** Markers along a curve, so that it is known without its colour. */
const MARKERS = 5;
/** Pixels of a dash, and between two. */
const DASH = [8, 5];
/** Pixels of a letter, or a little more. */
const LETTER = 8;

/** Draw empirical distributions over a logarithmic axis, a curve each. */
export function Distribution({ title, curves, of, format, height = 270 }: Props) {
  const heading = useId();
  const data = useMemo(
    () =>
      uPlot.join(
        curves.map(
          (curve) =>
            [curve.points.map(([x]) => x), curve.points.map(([, share]) => share)] as uPlot.AlignedData,
        ),
      ),
    [curves],
  );
  return (
    <figure aria-labelledby={heading} data-curves={curves.length}>
      <figcaption id={heading} className={styles["title"]}>
        {title}
      </figcaption>
      <UPlotChart
        data={data}
        structure={curves.map((curve) => curve.name).join()}
        height={height}
        options={({ colour, scale, axis }) => {
          const paint = (name: string): string => (name.startsWith("--") ? colour(name) : name);
          const edge = colour("--scheme-edge");
          const stepped = uPlot.paths.stepped;
          return {
            scales: {
              x: {
                time: false,
                distr: 3,
                range: (_, low, high) => [low * 0.9, Math.max(high * 1.1, low * 2)],
              },
              y: { range: [0, 1.02] },
            },
            axes: [
              {
                ...axis,
                label: of,
                labelFont: axis.font as string,
                labelSize: 24 * scale,
                labelGap: 4,
                size: 28 * scale,
                space: 60 * scale,
                splits: (_, __, low, high) => roundValues(low, high),
                filter: (chart, splits) =>
                  fitting(
                    splits,
                    (split) => chart.valToPos(split, "x"),
                    (split) => short(format(split)).length * LETTER * scale,
                    LETTER * scale,
                  ),
                values: (_, splits) => splits.map((split) => (split == null ? "" : short(format(split)))),
              },
              {
                ...axis,
                size: 58 * scale,
                splits: [0, 0.25, 0.5, 0.75, 1],
                values: (_, splits) => splits.map(percent),
              },
            ],
            series: [
              { label: of, value: (_, value) => (value == null ? "–" : format(value)) },
              ...curves.map((curve) => ({
                label: curve.name,
                stroke: paint(curve.colour),
                width: 2.2 * scale,
                ...(curve.dashed ? { dash: DASH.map((length) => length * scale) } : {}),
                ...(stepped ? { paths: stepped({ align: 1 }) } : {}),
                spanGaps: true,
                points: { show: false },
                value: (_: unknown, value: number | null) => (value == null ? "–" : percent(value)),
              })),
            ],
            cursor: { y: false, drag: { x: false, y: false }, dataIdx: nearestValue },
            hooks: {
              drawAxes: [
                (chart) =>
                  curves.forEach(({ dashed }, index) =>
                    drawEdge(chart, index + 1, edge, scale, dashed ? DASH : []),
                  ),
              ],
              drawSeries: [
                (chart, index) => {
                  const curve = curves[index - 1];
                  if (curve) drawMarkers(chart, index, curve.marker, paint(curve.colour), edge, scale);
                },
              ],
            },
          };
        }}
      />
    </figure>
  );
}

/**
 * Return the last index up to the pointer's at which a series has a value: curves have points at places of their own.
 */
function nearestValue(chart: uPlot, series: number, index: number): number {
  const values = chart.data[series];
  let known = index;
  while (known > 0 && values?.[known] == null) known -= 1;
  return series === 0 ? index : known;
}

/**
 * Return the values that a series has now, which may be newer than the curve that the chart was made for, and their
 * shares.
 */
function placesOf(chart: uPlot, series: number): (readonly [number, number])[] {
  const values = chart.data[series];
  return Array.from(chart.data[0]).flatMap((x, index) => {
    const share = values?.[index];
    return share == null ? [] : [[x, share] as const];
  });
}

/** Draw a wider line of another colour beneath a curve: the darkest schemes would be invisible on a dark page. */
function drawEdge(chart: uPlot, series: number, edge: string, scale: number, dash: readonly number[]): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.beginPath();
  let height: number | null = null;
  for (const [x, share] of placesOf(chart, series)) {
    const along = chart.valToPos(x, "x", true);
    if (height === null) ctx.moveTo(along, chart.valToPos(share, "y", true));
    else ctx.lineTo(along, height);
    height = chart.valToPos(share, "y", true);
    ctx.lineTo(along, height);
  }
  ctx.strokeStyle = edge;
  ctx.lineWidth = 4.5 * scale * uPlot.pxRatio;
  ctx.setLineDash(dash.map((length) => length * scale * uPlot.pxRatio));
  ctx.stroke();
  ctx.restore();
}

function drawMarkers(
  chart: uPlot,
  series: number,
  marker: string,
  colour: string,
  edge: string,
  scale: number,
): void {
  const places = placesOf(chart, series);
  const every = Math.max(1, Math.floor(places.length / MARKERS));
  const shape = new Path2D(MARKER_PATHS[marker]);
  const size = 5 * scale * uPlot.pxRatio;
  const { ctx } = chart;
  places.forEach(([x, share], index) => {
    if (index % every !== Math.floor(every / 2)) return;
    ctx.save();
    ctx.translate(chart.valToPos(x, "x", true), chart.valToPos(share, "y", true));
    ctx.scale(size, size);
    ctx.fillStyle = colour;
    ctx.fill(shape);
    ctx.strokeStyle = edge;
    ctx.lineWidth = 0.25;
    ctx.stroke(shape);
    ctx.restore();
  });
}
