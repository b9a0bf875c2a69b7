import * as Plot from "@observablehq/plot";
import { useCallback } from "react";
import { PlotFigure } from "../charts/PlotFigure";
import { cut, labelRoom } from "../charts/ticks";
import { Quiet } from "../parts/Quiet";
import { bitRate } from "../parts/units";
import { KEPT_S, type Row, type Span } from "./grantRows";

const ROW = 22;

/** Draw a bar a flow over the last half minute: filled while it may send, a line while it waits. */
export function Gantt({ rows, now }: { rows: readonly Row[]; now: number }) {
  const options = useCallback(
    (scale: number, width: number): Plot.PlotOptions => {
      const names = rows.map((row) => row.name);
      const { margin, letters } = labelRoom(names, scale, width);
      const spans = rows.flatMap((row) => row.spans.map((span) => ({ ...span, name: row.name })));
      const bars = (state: Span["state"], thick: number, fill: string): Plot.Markish =>
        Plot.barX(
          spans.filter((span) => span.state === state),
          {
            x1: (span: Span) => Math.max(-KEPT_S, span.from - now),
            x2: (span: Span) => span.to - now,
            y: "name",
            fill,
            insetTop: thick,
            insetBottom: thick,
            title: (span: Span & { name: string }) =>
              `${span.name}: ${span.state}${span.rate > 0 ? `, ${bitRate(span.rate)}` : ""}`,
            tip: { fill: "var(--card)" },
          },
        );
      return {
        height: (rows.length * ROW + 40) * scale,
        marginLeft: margin,
        marginBottom: 26 * scale,
        marginRight: 24,
        x: {
          domain: [-KEPT_S, 0],
          ticks: [-30, -20, -10, 0],
          label: null,
          tickFormat: (seconds: number) => (seconds === 0 ? "now" : `−${-seconds} s`),
        },
        y: { domain: names, label: null, tickFormat: (name: string) => cut(name, letters) },
        marks: [
          Plot.gridX({ stroke: "var(--rule)", strokeOpacity: 1 }),
          bars("granted", 3, "var(--series-0)"),
          bars("waiting", 9, "var(--quiet)"),
        ],
      };
    },
    [rows, now],
  );
  if (rows.length === 0) return <Quiet>No flow has asked in the last {KEPT_S} s.</Quiet>;
  const granted = rows.filter((row) => row.spans.at(-1)?.state === "granted").length;
  return (
    <>
      <PlotFigure
        label={`Grants of the last ${KEPT_S} s: ${rows.length} flows, ${granted} of them may send now`}
        options={options}
      />
      <Quiet>▮ may send · ― waits</Quiet>
    </>
  );
}
