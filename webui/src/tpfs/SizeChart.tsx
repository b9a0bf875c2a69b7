import { scaleLinear, scaleLog } from "d3-scale";
import { line } from "d3-shape";
import { MARKER_PATHS } from "../parts/marker";
import { byteSize, percent } from "../parts/units";
import { SERIES } from "./series";
import type { LearntTypes } from "../api/schema";
import { typeName } from "./types";

const WIDTH = 560;
const HEIGHT = 290;
const LEFT = 52;
const BOTTOM = 36;

/** Distribution of flow sizes, a curve a type, over sizes on a logarithmic axis. */
export function SizeChart({ learnt }: { learnt: LearntTypes }) {
  const points = learnt.points_bytes;
  const x = scaleLog([Math.max(1, points[0] ?? 1), points.at(-1) ?? 10], [LEFT, WIDTH - 12]);
  const y = scaleLinear([0, 1], [HEIGHT - BOTTOM, 10]);
  const path = line<readonly [number, number]>()
    .x(([size]) => x(size))
    .y(([, share]) => y(share));
  const ticks = x.ticks(6).filter((tick) => Math.log10(tick) % 1 === 0);
  return (
    <svg
      className="chart"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`Share of flows up to a size: ${learnt.types.map((type, index) => `type ${index}, half up to ${byteSize(type.median_bytes)}`).join("; ")}`}
    >
      {[0, 0.5, 1].map((share) => (
        <g key={share}>
          <line className="grid" x1={LEFT} x2={WIDTH - 12} y1={y(share)} y2={y(share)} />
          <text x={LEFT - 6} y={y(share)} dy="0.32em" textAnchor="end">
            {percent(share)}
          </text>
        </g>
      ))}
      {ticks.map((tick) => (
        <text key={tick} x={x(tick)} y={HEIGHT - BOTTOM + 16} textAnchor="middle">
          {byteSize(tick)
            .replace(/\.00? /, " ")
            .replace(".0 ", " ")}
        </text>
      ))}
      <text x={(LEFT + WIDTH) / 2} y={HEIGHT - 4} textAnchor="middle">
        flow size
      </text>
      {learnt.types.map((type, index) => {
        const { className, marker } = SERIES[index % SERIES.length]!;
        const curve = type.cdf.map((share, index) => [points[index] ?? 1, share] as const);
        return (
          <g key={index} className={className}>
            <title>{typeName(type, learnt.features)}</title>
            <path className={`line ${className}`} d={path(curve) ?? ""} />
            {curve
              .filter((_, place) => place % 8 === (index * 2) % 8)
              .map(([size, share]) => (
                <path
                  key={size}
                  className="mark"
                  transform={`translate(${x(size)} ${y(share)}) scale(5)`}
                  d={MARKER_PATHS[marker]}
                />
              ))}
          </g>
        );
      })}
    </svg>
  );
}
