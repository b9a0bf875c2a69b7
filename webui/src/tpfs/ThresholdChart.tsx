import { scaleLog } from "d3-scale";
import { byteSize } from "../parts/units";
import { logTicks, type Mark, marks } from "./thresholds";
import type { LearntTypes } from "../api/schema";

const WIDTH = 560;
const LEFT = 80;
const ROW = 34;
/** Pixels between two marks at least. */
const APART = 19;

/** Thresholds of each type beside the default ones: a mark for each queue that a flow sinks to. */
export function ThresholdChart({ learnt }: { learnt: LearntTypes }) {
  const rows = [
    { name: "default", thresholds: learnt.default_thresholds_bytes },
    ...learnt.types.map((type, index) => ({ name: `type ${index}`, thresholds: type.thresholds_bytes })),
  ];
  const all = rows.flatMap((row) => row.thresholds).filter((threshold) => threshold > 0);
  const [low, high] = [Math.min(...all) * 0.8, Math.max(...all) * 1.25];
  const x = scaleLog([low, high], [LEFT, WIDTH - 14]);
  const height = rows.length * ROW + 34;
  const words = rows
    .map((row) => `${row.name}: ${row.thresholds.map((threshold) => byteSize(threshold)).join(", ")}`)
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
            {marks(row.thresholds, (bytes) => x(Math.max(1, bytes)), APART).map((mark) => (
              <g key={mark.label} transform={`translate(${mark.at} ${y})`}>
                <title>{title(mark)}</title>
                <rect x={-half(mark)} y={-9} width={2 * half(mark)} height={18} rx={9} />
                <text textAnchor="middle" dy="0.36em">
                  {mark.label}
                </text>
              </g>
            ))}
          </g>
        );
      })}
      {logTicks(low, high).map((tick) => (
        <text key={tick} x={x(tick)} y={height - 8} textAnchor="middle">
          {byteSize(tick)
            .replace(/\.00? /, " ")
            .replace(".0 ", " ")}
        </text>
      ))}
    </svg>
  );
}

/** Half the width of a mark: round for one queue, longer for several. */
const half = (mark: Mark): number => (mark.label.length > 1 ? 16 : 9);

const title = ({ label, from, to }: Mark): string =>
  from === to
    ? `after ${byteSize(from)} to queue ${label}`
    : `after ${byteSize(from)} to ${byteSize(to)} to queues ${label}`;
