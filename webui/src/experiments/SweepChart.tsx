import * as Plot from "@observablehq/plot";
import { useCallback } from "react";
import { PlotFigure } from "../charts/PlotFigure";
import { cutApart, fitting, short } from "../charts/ticks";
import styles from "../charts/charts.module.css";
import { markerPath } from "../parts/marker";
import type { SchemeStyle } from "../parts/schemes";
import { barWords } from "./bars";
import { alongAxis, shown, type SweepChartData, tickWords } from "./sweep";

const HEIGHT = 260;
const LETTER = 8;
const MARGIN = 20;

/**
 * Draw a measure over a sweep's axis: a line a scheme, its 95 % interval as a band; markers are hollow where it is
 * doubtful.
 */
export function SweepChart({ chart }: { chart: SweepChartData }) {
  const options = useCallback((scale: number, width: number) => plotOptions(chart, scale, width), [chart]);
  const { name, less, axis, lines, format } = chart;
  const words = lines.map(
    (line) =>
      `${line.label}: ${line.points
        .map(({ tick, bar }) => `${tickWords(axis, tick)}: ${bar ? barWords(bar, format) : "no figure"}`)
        .join(", ")}`,
  );
  return (
    <figure>
      <figcaption className={styles["title"]}>
        {name} ({less ? "less" : "more"} is better)
      </figcaption>
      <PlotFigure label={`${name} over ${axis.label}. ${words.join("; ")}`} options={options} />
    </figure>
  );
}

function plotOptions(chart: SweepChartData, scale: number, width: number): Plot.PlotOptions {
  const { axis, ticks, lines, format } = chart;
  const numbers = ticks.every((tick) => typeof tick === "number");
  const place = numbers ? (tick: unknown) => tick as number : (tick: unknown) => shown(tick as string);
  const rows = lines.flatMap((line) =>
    alongAxis(line.points).map(({ tick, bar }) => ({
      label: line.label,
      style: line.style,
      x: place(tick),
      value: bar?.value ?? Number.NaN,
      low: bar?.interval?.[0] ?? bar?.value ?? Number.NaN,
      high: bar?.interval?.[1] ?? bar?.value ?? Number.NaN,
      doubtful: bar?.isDoubtful === true,
      title: bar ? `${tickWords(axis, tick)}\n${barWords(bar, format)}` : "",
    })),
  );
  const known = rows.filter((row) => !Number.isNaN(row.value));
  const highest = Math.max(...known.map((row) => row.high));
  const marginLeft = (format(highest).length * LETTER + MARGIN) * scale;
  const room = width - marginLeft - MARGIN * scale;
  const letters = Math.floor(room / Math.max(1, ticks.length) / (LETTER * scale)) - 1;
  const labels = cutApart(ticks.map(shown), letters);
  const colour = (row: (typeof rows)[number]): string => row.style.colour;
  const path = { x: "x", y: "value", z: "label" };
  return {
    height: HEIGHT * scale,
    marginLeft,
    marginRight: MARGIN * scale,
    marginTop: MARGIN * scale,
    marginBottom: 46 * scale,
    x: {
      // words in the sweep's order, not in that of letters
      ...(numbers ? { type: "linear" } : { type: "point", domain: ticks.map(shown) }),
      label: axis.unit ? `${axis.label} (${axis.unit})` : axis.label,
      labelArrow: "none",
      labelAnchor: "center",
      labelOffset: 40 * scale,
      ticks: numbers ? fittingTicks(ticks as number[], room, LETTER * scale) : ticks.map(shown),
      tickFormat: numbers ? shown : (_: unknown, index: number) => labels[index] ?? "",
    },
    y: {
      domain: [0, highest * 1.05 || 1],
      ticks: 5,
      tickFormat: (value: number) => short(format(value)),
      label: null,
      grid: true,
    },
    marks: [
      Plot.areaY(rows, {
        x: "x",
        y1: "low",
        y2: "high",
        z: "label",
        fill: colour,
        fillOpacity: 0.18,
        stroke: "var(--scheme-edge)",
        strokeOpacity: 0.35,
        strokeWidth: scale,
      }),
      // Beneath each line a wider one: the darkest schemes would be lost on a dark page.
      Plot.line(rows, { ...path, stroke: "var(--scheme-edge)", strokeWidth: 4 * scale }),
      Plot.line(rows, { ...path, stroke: colour, strokeWidth: 2 * scale }),
      Plot.dot(known, { x: "x", y: "value", render: markers(known, scale) }),
      Plot.tip(
        known,
        Plot.pointer({ x: "x", y: "value", title: "title", fill: "var(--card)", fontSize: 13 * scale }),
      ),
    ],
  };
}

/** Return those of an axis' values whose labels fit beside each other, on *width* pixels. */
function fittingTicks(ticks: readonly number[], width: number, letter: number): number[] {
  const sorted = [...ticks].sort((left, right) => left - right);
  const [low, high] = [sorted[0] ?? 0, sorted.at(-1) ?? 0];
  const fits = fitting(
    sorted,
    (tick) => (high > low ? ((tick - low) / (high - low)) * width : 0),
    (tick) => shown(tick).length * letter,
    letter,
  );
  return fits.filter((tick) => tick !== null);
}

/** Draw schemes' own markers, in place of Plot's symbols. */
function markers(
  rows: readonly { style: SchemeStyle; doubtful: boolean }[],
  scale: number,
): NonNullable<Plot.MarkOptions["render"]> {
  return (index, _, { x, y }, __, context) => {
    const group = context.document.createElementNS("http://www.w3.org/2000/svg", "g");
    for (const number of index) {
      const row = rows[number];
      if (!row) continue;
      const { colour, marker } = row.style;
      const shape = context.document.createElementNS("http://www.w3.org/2000/svg", "path");
      shape.setAttribute("d", markerPath(marker));
      shape.setAttribute("transform", `translate(${x?.[number]},${y?.[number]}) scale(${5 * scale})`);
      shape.setAttribute("fill", row.doubtful ? "var(--card)" : colour);
      shape.setAttribute("stroke", row.doubtful ? colour : "var(--scheme-edge)");
      shape.setAttribute("stroke-width", "0.3");
      group.append(shape);
    }
    return group;
  };
}
