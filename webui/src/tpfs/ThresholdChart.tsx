import { scaleLog } from "d3-scale";
import { byteSize } from "../parts/units";
import type { Learnt } from "./types";

const WIDTH = 560;
const LEFT = 80;
const ROW = 34;

/** Thresholds of each type beside the default ones: a mark for each queue that a flow sinks to. */
export function ThresholdChart({ learnt }: { learnt: Learnt }) {
  const rows = [
    { name: "default", thresholds: learnt.default_thresholds_bytes },
    ...learnt.types.map((type, index) => ({ name: `type ${index}`, thresholds: type.thresholds_bytes })),
  ];
  const all = rows.flatMap((row) => row.thresholds).filter((one) => one > 0);
  const x = scaleLog([Math.min(...all) * 0.7, Math.max(...all) * 1.5], [LEFT, WIDTH - 14]);
  const height = rows.length * ROW + 34;
  const words = rows
    .map((row) => `${row.name}: ${row.thresholds.map((one) => byteSize(one)).join(", ")}`)
    .join("; ");
  return (
    <svg className="chart" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={`Thresholds. ${words}`}>
      {rows.map((row, index) => {
        const y = index * ROW + ROW / 2;
        return (
          <g key={row.name} className={index === 0 ? "default-thresholds" : "thresholds"}>
            <line className="grid" x1={LEFT} x2={WIDTH - 14} y1={y} y2={y} />
            <text x={LEFT - 8} y={y} dy="0.35em" textAnchor="end">
              {row.name}
            </text>
            {row.thresholds.map((threshold, queue) => (
              <g key={queue} transform={`translate(${x(Math.max(1, threshold))} ${y})`}>
                <title>{`after ${byteSize(threshold)} to queue ${queue + 1}`}</title>
                <circle r={9} />
                <text textAnchor="middle" dy="0.36em">
                  {queue + 1}
                </text>
              </g>
            ))}
          </g>
        );
      })}
      {x
        .ticks(5)
        .filter((tick) => Math.log10(tick) % 1 === 0)
        .map((tick) => (
          <text key={tick} x={x(tick)} y={height - 8} textAnchor="middle">
            {byteSize(tick)
              .replace(/\.00? /, " ")
              .replace(".0 ", " ")}
          </text>
        ))}
    </svg>
  );
}
