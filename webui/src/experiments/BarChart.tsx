import { scaleLinear } from "d3-scale";
import { useId } from "react";
import { MARKER_PATHS } from "../parts/marker";
import { schemeStyle } from "../parts/schemes";
import type { Measure } from "./bars";

const WIDTH = 620;
const LEFT = 150;
const RIGHT = 120;
const ROW = 30;

/** A bar a scheme with its 95 % interval; hollow where the processor limited the run. */
export function BarChart({ measure }: { measure: Measure }) {
  const heading = useId();
  const highest = Math.max(...measure.bars.map((bar) => Math.max(bar.value, bar.interval?.[1] ?? 0)));
  const x = scaleLinear([0, highest * 1.05 || 1], [LEFT, WIDTH - RIGHT]);
  return (
    <figure className="bar-chart" aria-labelledby={heading}>
      <figcaption id={heading} className="chart-title">
        {measure.name} <span className="quiet">({measure.less ? "less" : "more"} is better)</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${measure.bars.length * ROW + 6}`} role="img" aria-label={words(measure)}>
        {measure.bars.map((bar, index) => {
          const { colour, marker } = schemeStyle(bar.scheme);
          const y = index * ROW + ROW / 2 + 3;
          return (
            <g key={bar.label}>
              <path
                className="scheme-shape"
                transform={`translate(12 ${y}) scale(6)`}
                d={MARKER_PATHS[marker]}
                fill={colour}
              />
              <text x={26} y={y} dy="0.35em">
                {bar.label}
                {bar.cpuLimited ? " *" : ""}
              </text>
              <rect
                className={`scheme-bar ${bar.cpuLimited ? "limited" : ""}`}
                x={LEFT}
                y={y - 9}
                width={Math.max(1, x(bar.value) - LEFT)}
                height={18}
                fill={colour}
                stroke={colour}
              />
              {bar.interval && (
                <g className="interval">
                  <line x1={x(bar.interval[0])} x2={x(bar.interval[1])} y1={y} y2={y} />
                  <line x1={x(bar.interval[0])} x2={x(bar.interval[0])} y1={y - 5} y2={y + 5} />
                  <line x1={x(bar.interval[1])} x2={x(bar.interval[1])} y1={y - 5} y2={y + 5} />
                </g>
              )}
              <text x={WIDTH - RIGHT + 10} y={y} dy="0.35em">
                {measure.format(bar.value)}
              </text>
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

function words(measure: Measure): string {
  const bars = measure.bars.map(
    (bar) =>
      `${bar.label} ${measure.format(bar.value)}` +
      (bar.interval ? ` (${measure.format(bar.interval[0])} to ${measure.format(bar.interval[1])})` : ""),
  );
  return `${measure.name}: ${bars.join(", ")}`;
}
