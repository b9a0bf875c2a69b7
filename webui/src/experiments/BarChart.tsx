import * as Plot from "@observablehq/plot";
import { useCallback } from "react";
import { PlotFigure } from "../charts/PlotFigure";
import { cut, labelRoom } from "../charts/ticks";
import styles from "../charts/charts.module.css";
import { type Bar, barWords, type Measure } from "./bars";

const ROW = 30;
const VALUE = 110;

/** Draw a bar a scheme with its 95 % interval; hollow where it is doubtful. */
export function BarChart({ measure }: { measure: Measure }) {
  const options = useCallback(
    (scale: number, width: number): Plot.PlotOptions => {
      const { bars, format } = measure;
      const highest = Math.max(...bars.map((bar) => Math.max(bar.value, bar.interval?.[1] ?? 0)));
      const label = (bar: Bar): string => (bar.isDoubtful ? `${bar.label} *` : bar.label);
      const { margin, letters } = labelRoom(bars.map(label), scale, width);
      const measured = bars.filter((bar) => bar.interval !== null);
      return {
        height: (bars.length * ROW + 10) * scale,
        marginLeft: margin,
        marginRight: VALUE * scale,
        marginTop: 5,
        marginBottom: 5,
        x: { domain: [0, highest * 1.05 || 1], axis: null },
        y: {
          domain: bars.map(label),
          label: null,
          tickSize: 0,
          tickFormat: (label: string) => cut(label, letters),
        },
        marks: [
          Plot.barX(bars, {
            x: "value",
            y: label,
            fill: (bar: Bar) => bar.style.colour,
            fillOpacity: (bar: Bar) => (bar.isDoubtful ? 0.25 : 1),
            stroke: "var(--scheme-edge)",
            insetTop: 3,
            insetBottom: 3,
            title: (bar: Bar) => barWords(bar, format),
            tip: { fill: "var(--card)" },
          }),
          // A line that shows on dark and on light bars.
          ...[
            { stroke: "var(--card)", strokeWidth: 4 * scale },
            { stroke: "var(--ink)", strokeWidth: 1.6 * scale },
          ].map((line) =>
            Plot.ruleY(measured, {
              x1: (bar: Bar) => bar.interval?.[0],
              x2: (bar: Bar) => bar.interval?.[1],
              y: label,
              ...line,
            }),
          ),
          Plot.text(bars, {
            y: label,
            frameAnchor: "right",
            textAnchor: "start",
            dx: 10,
            text: (bar: Bar) => format(bar.value),
          }),
        ],
      };
    },
    [measure],
  );
  return (
    <figure>
      <figcaption className={styles["title"]}>
        {measure.name} ({measure.less ? "less" : "more"} is better)
      </figcaption>
      <PlotFigure
        label={`${measure.name}: ${measure.bars.map((bar) => barWords(bar, measure.format)).join(", ")}`}
        options={options}
      />
    </figure>
  );
}
