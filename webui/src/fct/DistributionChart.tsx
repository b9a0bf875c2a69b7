import { scaleLinear, scaleLog } from "d3-scale";
import { curveStepAfter, line } from "d3-shape";
import { useId } from "react";
import { MARKER_PATHS } from "../parts/marker";
import { schemeStyle } from "../parts/schemes";
import { duration, percent } from "../parts/units";

export interface Curve {
  scheme: string;
  /** (time in s, share), growing. */
  points: readonly (readonly [number, number])[];
}

const WIDTH = 560;
const HEIGHT = 300;
const LEFT = 52;
const BOTTOM = 40;
const RIGHT = 14;
const TOP = 10;
/** Markers along a curve, so that it is known without its colour. */
const MARKERS = 5;

/** Empirical distributions of completion times, a curve a scheme; time on a logarithmic axis. */
export function DistributionChart({ title, curves }: { title: string; curves: readonly Curve[] }) {
  const heading = useId();
  const times = curves.flatMap((curve) => curve.points.map(([time]) => time)).filter((time) => time > 0);
  const [low, high] = [Math.min(...times), Math.max(...times)];
  const x = scaleLog([low * 0.8, Math.max(high * 1.25, low * 2)], [LEFT, WIDTH - RIGHT]);
  const y = scaleLinear([0, 1], [HEIGHT - BOTTOM, TOP]);
  const path = line<readonly [number, number]>()
    .x(([time]) => x(time))
    .y(([, share]) => y(share))
    .curve(curveStepAfter);
  const ticks = x.ticks(6).filter((tick) => /^[125]/.test(tick.toExponential()));
  return (
    <figure className="distribution" aria-labelledby={heading}>
      <figcaption id={heading} className="chart-title">
        {title}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <g key={share}>
            <line className="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(share)} y2={y(share)} />
            <text x={LEFT - 6} y={y(share)} dy="0.32em" textAnchor="end">
              {percent(share)}
            </text>
          </g>
        ))}
        {ticks.map((tick) => (
          <g key={tick}>
            <line className="grid" x1={x(tick)} x2={x(tick)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <text x={x(tick)} y={HEIGHT - BOTTOM + 15} textAnchor="middle">
              {duration(tick)
                .replace(/\.00? /, " ")
                .replace(".0 ", " ")}
            </text>
          </g>
        ))}
        <text x={(LEFT + WIDTH) / 2} y={HEIGHT - 6} textAnchor="middle">
          completion time
        </text>
        {curves.map(({ scheme, points }) => {
          const { colour, marker } = schemeStyle(scheme);
          const first = points[0];
          if (!first) return null;
          const every = Math.max(1, Math.floor(points.length / MARKERS));
          return (
            <g key={scheme} className="scheme-curve">
              <path d={path([[first[0], 0], ...points]) ?? ""} className="halo" />
              <path d={path([[first[0], 0], ...points]) ?? ""} stroke={colour} />
              {points
                .filter((_, index) => index % every === Math.floor(every / 2))
                .map(([time, share]) => (
                  <path
                    key={time}
                    className="scheme-shape"
                    transform={`translate(${x(time)} ${y(share)}) scale(5)`}
                    d={MARKER_PATHS[marker]}
                    fill={colour}
                  />
                ))}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
