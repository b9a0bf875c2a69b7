import { scaleLinear } from "d3-scale";
import { bitRate } from "../parts/units";
import { KEPT_S, type Row } from "./grantRows";

const WIDTH = 900;
const LEFT = 150;
const ROW = 20;

/** A bar a flow over the last half minute: filled while it may send, a line while it waits. */
export function Gantt({ rows, now }: { rows: readonly Row[]; now: number }) {
  const x = scaleLinear([now - KEPT_S, now], [LEFT, WIDTH - 10]).clamp(true);
  const height = Math.max(1, rows.length) * ROW + 26;
  if (rows.length === 0) return <p className="quiet">No flow has asked in the last {KEPT_S} s.</p>;
  const granted = rows.filter((row) => row.spans.at(-1)?.state === "granted").length;
  return (
    <>
      <svg
        className="gantt"
        viewBox={`0 0 ${WIDTH} ${height}`}
        role="img"
        aria-label={`Grants of the last ${KEPT_S} s: ${rows.length} flows, ${granted} of them may send now`}
      >
        {rows.map((row, index) => {
          const y = index * ROW + ROW / 2;
          return (
            <g key={row.key}>
              <text x={LEFT - 8} y={y} dy="0.35em" textAnchor="end">
                {row.name}
              </text>
              {row.spans.map((span) => (
                <rect
                  key={span.from}
                  className={span.state}
                  x={x(span.from)}
                  width={Math.max(2, x(span.to) - x(span.from))}
                  y={span.state === "granted" ? y - 7 : y - 1.5}
                  height={span.state === "granted" ? 14 : 3}
                >
                  <title>{`${row.name}: ${span.state}${span.rate > 0 ? `, ${bitRate(span.rate)}` : ""}`}</title>
                </rect>
              ))}
            </g>
          );
        })}
        <text x={LEFT} y={height - 6}>
          −{KEPT_S} s
        </text>
        <text x={WIDTH - 10} y={height - 6} textAnchor="end">
          now
        </text>
      </svg>
      <p className="quiet">▮ may send · ― waits</p>
    </>
  );
}
