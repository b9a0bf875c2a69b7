import type { FlowDetail } from "../api/schema";
import { cut, labelRoom } from "../charts/ticks";
import { clockTime, count, percent } from "../parts/units";
import { pathName } from "./names";
import { mainPath, total } from "./shares";
import { ModeBand } from "./ModeBand";
import { modeSpans, visibleSteps } from "./strip";
import { useScale } from "../app/Appearance";
import { useWidth } from "../parts/useWidth";
import styles from "./paths.module.css";

interface Props {
  detail: FlowDetail;
  stamps: readonly string[];
  names: ReadonlyMap<string, string>;
  /** Whether leaves have modes under the scheme in force. */
  modal: boolean;
  /** Unix seconds at the right edge. */
  to: number;
  /** Steps shown. */
  steps?: number;
}

/** Room for the names of paths at least. */
const LEFT = 88;
const RIGHT = 8;
const TOP = 34;
const MARKS = 34;

/** Draw a flow's packets over time: a row a path, darker where more of a half second's packets took it. */
export function PathStrip({ detail, stamps, names, modal, to, steps = 60 }: Props) {
  const [frame, pixels] = useWidth<HTMLElement>(700);
  const wide = pixels / useScale();
  const row = Math.max(11, Math.min(24, 220 / Math.max(1, stamps.length)));
  const shown = visibleSteps(detail.timeline, steps);
  const { margin, letters } = labelRoom(
    stamps.map((stamp) => pathName(stamp, names)),
    1,
    wide,
  );
  const left = Math.max(LEFT, margin);
  const bottom = TOP + row * stamps.length;
  const height = bottom + MARKS + 16;
  const from = shown.from ?? to - steps / 2;
  const until = Math.max(shown.to ?? to, from + 5);
  const x = (seconds: number): number => left + ((seconds - from) / (until - from)) * (wide - left - RIGHT);
  const width = Math.max(1.5, ((wide - left - RIGHT) * shown.stepS) / (until - from) - 1);
  const leaf = detail.paths[0]?.switches[0] ?? "";
  const jumps = shown.steps.filter((step, index) => {
    const before = shown.steps[index - 1];
    const main = mainPath(step);
    const was = before && mainPath(before);
    return main !== null && was != null && main !== was;
  }).length;
  const lost = shown.steps.reduce((sum, step) => sum + step.lost, 0);
  const recovered = shown.steps.reduce((sum, step) => sum + step.recovered, 0);
  return (
    <figure ref={frame} data-testid="path-strip">
      <svg
        className={styles["drawing"]}
        viewBox={`0 0 ${wide} ${height}`}
        role="img"
        aria-label={`Paths over time: ${count(shown.steps.length, "half second")}; ${count(jumps, "jump")} from one path to another; ${lost} lost, ${recovered} recovered`}
      >
        {stamps.map((stamp, index) => (
          <g key={stamp}>
            <text x={left - 8} y={TOP + (index + 0.5) * row} dy="0.35em" textAnchor="end">
              {left > LEFT ? cut(pathName(stamp, names), letters) : pathName(stamp, names)}
            </text>
            <line
              className={styles["grid"]}
              x1={left}
              x2={wide - RIGHT}
              y1={TOP + (index + 1) * row}
              y2={TOP + (index + 1) * row}
            />
          </g>
        ))}
        {shown.steps.map((step) => {
          const all = total(step.paths);
          return stamps.map((stamp, index) => {
            const share = all > 0 ? (step.paths[stamp] ?? 0) / all : 0;
            if (share === 0) return null;
            return (
              <rect
                key={`${step.at} ${stamp}`}
                className={styles["cell"]}
                data-cell={stamp}
                x={x(step.at - shown.stepS)}
                y={TOP + index * row + 1}
                width={width}
                height={row - 1}
                fillOpacity={0.18 + 0.82 * share}
              >
                <title>{`${clockTime(step.at)}: ${percent(share)} of ${all} packets over ${pathName(stamp, names)}`}</title>
              </rect>
            );
          });
        })}
        {modal && <ModeBand spans={modeSpans(detail, from, until)} leaf={leaf} x={x} />}
        {shown.steps.map((step) => (
          <g key={step.at}>
            {step.lost > 0 && (
              <text className={styles["lost"]} x={x(step.at) - width / 2} y={bottom + 13} textAnchor="middle">
                ▼<title>{`${clockTime(step.at)}: ${step.lost} lost`}</title>
              </text>
            )}
            {step.recovered > 0 && (
              <text
                className={styles["recovered"]}
                x={x(step.at) - width / 2}
                y={bottom + 28}
                textAnchor="middle"
              >
                ▲<title>{`${clockTime(step.at)}: ${step.recovered} recovered`}</title>
              </text>
            )}
          </g>
        ))}
        <text x={left - 8} y={bottom + 13} textAnchor="end" className={styles["lost"]}>
          ▼ lost
        </text>
        <text x={left - 8} y={bottom + 28} textAnchor="end" className={styles["recovered"]}>
          ▲ repaired
        </text>
        <text x={left} y={height - 3}>
          {clockTime(from)}
        </text>
        <text x={wide - RIGHT} y={height - 3} textAnchor="end">
          {clockTime(until)}
        </text>
      </svg>
    </figure>
  );
}
