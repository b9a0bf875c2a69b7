import { clockTime } from "../parts/units";
import type { ModeSpan } from "./strip";
import styles from "./paths.module.css";

const HEIGHT = 14;
/** Spans that are wide enough say their mode in words. */
const WORDS = 30;

/** Draw, above a flow's paths, when its leaf was ON (filled) and OFF (a line). */
export function ModeBand({
  spans,
  leaf,
  x,
}: {
  spans: readonly ModeSpan[];
  leaf: string;
  x: (seconds: number) => number;
}) {
  if (spans.length === 0) return null;
  return (
    <g transform="translate(0 13)">
      <text x={x(spans[0]!.from) - 8} y={HEIGHT / 2} dy="0.35em" textAnchor="end">
        {leaf} mode
      </text>
      {spans.map((span) => {
        const [left, right] = [x(span.from), x(span.to)];
        const on = span.mode === "on";
        return (
          <g key={span.from} className={styles[span.mode]}>
            <title>{`${leaf} ${on ? "ON" : "OFF"} from ${clockTime(span.from)} to ${clockTime(span.to)}`}</title>
            <rect
              x={left}
              width={Math.max(1.5, right - left)}
              y={on ? 0 : HEIGHT / 2 - 1}
              height={on ? HEIGHT : 2}
            />
            {right - left > WORDS && (
              <text x={(left + right) / 2} y={HEIGHT / 2} dy={on ? "0.35em" : "-0.3em"} textAnchor="middle">
                {on ? "ON" : "OFF"}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}
