import * as Plot from "@observablehq/plot";
import { useCallback } from "react";
import type { LearntTypes } from "../api/schema";
import { PlotFigure } from "../charts/PlotFigure";
import { fitting, roundValues, short } from "../charts/ticks";
import { byteSize } from "../parts/units";
import { type Mark, marks } from "./thresholds";

const ROW = 34;
const LEFT = 74;
const RIGHT = 24;
/** Pixels between two marks at least. */
const APART = 22;

/** Draw thresholds of each type beside the default thresholds: a mark for each queue to which a flow is demoted. */
export function ThresholdChart({ learnt }: { learnt: LearntTypes }) {
  const rows = [
    { name: "default", thresholds: learnt.default_thresholds_bytes },
    ...learnt.types.map((type, index) => ({ name: `type ${index}`, thresholds: type.thresholds_bytes })),
  ];
  const options = useCallback(
    (scale: number, width: number): Plot.PlotOptions => {
      const sizes = rows.flatMap((row) => row.thresholds).map((bytes) => Math.max(1, bytes));
      const [low, high] = [Math.min(...sizes) * 0.8, Math.max(...sizes) * 1.25];
      const left = LEFT * scale;
      const inside = width - left - RIGHT;
      const x = (bytes: number): number =>
        left + (Math.log(Math.max(low, bytes) / low) / Math.log(high / low)) * inside;
      const drawn = rows.flatMap((row) =>
        marks(row.thresholds, x, APART * scale).map((mark) => ({ ...mark, name: row.name })),
      );
      const middle = (mark: Mark): number => Math.sqrt(Math.max(1, mark.from) * Math.max(1, mark.to));
      const tick = (bytes: number): string => short(byteSize(bytes));
      return {
        height: (rows.length * ROW + 50) * scale,
        marginLeft: left,
        marginRight: RIGHT,
        marginBottom: 42 * scale,
        x: {
          type: "log",
          domain: [low, high],
          label: "sent by then",
          ticks: fitting(roundValues(low, high), x, (bytes) => tick(bytes).length * 8 * scale, 16).filter(
            (bytes) => bytes !== null,
          ),
          tickFormat: tick,
        },
        y: { domain: rows.map((row) => row.name), label: null },
        r: { type: "identity" },
        marks: [
          Plot.gridY({ stroke: "var(--rule)", strokeOpacity: 1 }),
          Plot.dot(drawn, {
            x: middle,
            y: "name",
            r: ({ label }: Mark) => (7 + 3.5 * label.length) * scale,
            fill: (mark: { name: string }) => (mark.name === "default" ? "var(--card)" : "var(--series-0)"),
            stroke: "var(--ink)",
            title: words,
            tip: { fill: "var(--card)" },
          }),
          Plot.text(drawn, {
            x: middle,
            y: "name",
            text: "label",
            fill: (mark: { name: string }) => (mark.name === "default" ? "var(--ink)" : "var(--card)"),
          }),
        ],
      };
    },
    [learnt],
  );
  const description = rows
    .map((row) => `${row.name}: ${row.thresholds.map((threshold) => byteSize(threshold)).join(", ")}`)
    .join("; ");
  return <PlotFigure label={`Thresholds. ${description}`} options={options} />;
}

const words = ({ label, from, to }: Mark): string =>
  from === to
    ? `after ${byteSize(from)} to queue ${label}`
    : `after ${byteSize(from)} to ${byteSize(to)} to queues ${label}`;
