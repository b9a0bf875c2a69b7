import { scaleLinear } from "d3-scale";
import { area, line } from "d3-shape";
import { useId } from "react";

export interface Series {
  name: string;
  /** A class that sets colour and dashes: `series-0`, `series-1`, ... */
  className: string;
  /** Time (Unix seconds) and value, oldest first; null: not known. */
  points: readonly (readonly [number, number | null])[];
  filled?: boolean;
}

interface Props {
  title: string;
  series: readonly Series[];
  /** Unix seconds shown. */
  from: number;
  to: number;
  /** The value axis reaches at least this. */
  atLeast: number;
  format: (value: number) => string;
  height?: number;
  /** A value to mark, as the link's rate. */
  limit?: { value: number; name: string } | null;
}

const WIDTH = 460;
const LEFT = 78;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 22;

/** Values over the last seconds, a line a series. */
export function TimeChart({ title, series, from, to, atLeast, format, height = 130, limit }: Props) {
  const heading = useId();
  const highest = Math.max(
    atLeast,
    ...series.flatMap((curve) => curve.points.map(([, value]) => value ?? 0)),
  );
  const x = scaleLinear([from, to], [LEFT, WIDTH - RIGHT]);
  const y = scaleLinear([0, highest * 1.05], [height - BOTTOM, TOP]).nice(3);
  const path = line<readonly [number, number | null]>()
    .defined(([, value]) => value !== null)
    .x(([second]) => x(second))
    .y(([, value]) => y(value ?? 0));
  const fill = area<readonly [number, number | null]>()
    .defined(([, value]) => value !== null)
    .x(([second]) => x(second))
    .y0(y(0))
    .y1(([, value]) => y(value ?? 0));
  const seconds = [0, 0.25, 0.5, 0.75, 1].map((share) => from + (to - from) * share);
  return (
    <figure className="time-chart" aria-labelledby={heading}>
      <figcaption id={heading}>
        {title}
        {series.length > 1 &&
          series.map((curve) => (
            <span key={curve.name} className="key">
              <svg width="26" height="8" aria-hidden="true">
                <line x1="0" x2="26" y1="4" y2="4" className={`line ${curve.className}`} />
              </svg>
              {curve.name}
            </span>
          ))}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${height}`} aria-hidden="true">
        {y.ticks(3).map((tick) => (
          <g key={tick}>
            <line className="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 6} y={y(tick)} dy="0.32em" textAnchor="end">
              {format(tick)}
            </text>
          </g>
        ))}
        {seconds.map((second) => (
          <text
            key={second}
            x={x(second)}
            y={height - 5}
            textAnchor={second === from ? "start" : second === to ? "end" : "middle"}
          >
            {second === to ? "now" : `−${Math.round(to - second)} s`}
          </text>
        ))}
        {limit && limit.value <= y.domain()[1]! && (
          <line className="limit" x1={LEFT} x2={WIDTH - RIGHT} y1={y(limit.value)} y2={y(limit.value)} />
        )}
        {series.map((curve) => (
          <g key={curve.name}>
            {curve.filled && <path className={`fill ${curve.className}`} d={fill(curve.points) ?? ""} />}
            <path className={`line ${curve.className}`} d={path(curve.points) ?? ""} />
          </g>
        ))}
      </svg>
    </figure>
  );
}
