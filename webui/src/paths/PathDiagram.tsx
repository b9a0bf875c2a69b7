import type { PathView } from "../api/schema";
import { inBox } from "../fabric/layout";
import { percent } from "../parts/units";
import { diagram } from "./diagram";
import type { Counts } from "./shares";
import { useScale } from "../app/Appearance";
import { useWidth } from "../parts/useWidth";
import styles from "./paths.module.css";

const NODE = 17;
/** Of a switch's name that has room in its box. */
const LETTERS = 5;

/** Draw the paths between two hosts from left to right; lines are as wide as the share of packets on that path. */
export function PathDiagram({
  source,
  destination,
  paths,
  now,
}: {
  source: string;
  destination: string;
  paths: readonly Pick<PathView, "stamp" | "switches">[];
  now: Counts;
}) {
  const [frame, pixels] = useWidth<HTMLDivElement>(380);
  const width = pixels / useScale();
  const { nodes, edges, columns, rows } = diagram(source, destination, paths, now);
  const step = Math.max(22, Math.min(38, 300 / Math.max(1, rows)));
  const height = Math.max(70, rows * step + 10);
  const position = (column: number, place: number, members: number) => ({
    x: 26 + (column / Math.max(1, columns - 1)) * (width - 52),
    y: height / 2 + (place - (members - 1) / 2) * step,
  });
  const spots = new Map(nodes.map((node) => [node.key, position(node.column, node.place, node.members)]));
  return (
    <div ref={frame} data-testid="path-diagram">
      <svg
        className={styles["drawing"]}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`Paths from ${source} to ${destination}: ${edges
          .filter((edge) => edge.column === 1 && edge.share > 0)
          .map((edge) => `${percent(edge.share)} by ${edge.to.split(" ")[1]}`)
          .join(", ")}`}
      >
        {edges.map((edge) => {
          const a = spots.get(edge.from)!;
          const b = spots.get(edge.to)!;
          return (
            <line
              key={`${edge.from}-${edge.to}`}
              className={styles[edge.share > 0 ? "used" : "unused"]}
              x1={a.x}
              y1={a.y}
              x2={b.x}
              y2={b.y}
              strokeWidth={edge.share > 0 ? 1.5 + 10 * edge.share : 1}
            >
              <title>{`${edge.from.split(" ")[1]} to ${edge.to.split(" ")[1]}: ${percent(edge.share)} of packets`}</title>
            </line>
          );
        })}
        {nodes.map((node) => {
          const spot = spots.get(node.key)!;
          return (
            <g key={node.key} transform={`translate(${spot.x} ${spot.y})`}>
              <title>{node.name}</title>
              {node.host ? (
                <circle r={NODE} className={styles["end"]} />
              ) : (
                <rect x={-NODE} y={-9} width={2 * NODE} height={18} rx={3} className={styles["hop"]} />
              )}
              <text textAnchor="middle" dy="0.36em" className={node.host ? undefined : styles["onHop"]}>
                {node.host ? node.name : inBox(node.name, LETTERS)}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
