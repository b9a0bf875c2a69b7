import { memo } from "react";
import type { LeafMode, SwitchView } from "../api/schema";
import { inBox, type Spot } from "./layout";
import styles from "./FabricMap.module.css";

interface Props {
  view: SwitchView;
  spot: Spot;
  mode: LeafMode | undefined;
  /** The mode's age as text; "" where the scheme has no modes. */
  since: string;
  down: boolean;
}

/** Of a name that has room in the box. */
const LETTERS = 6;

/** A switch, and below a leaf its mode with the time since. */
export const SwitchBox = memo(function SwitchBox({ view, spot, mode, since, down }: Props) {
  const lost = !view.connected || down;
  return (
    <g
      transform={`translate(${spot.x} ${spot.y})`}
      className={`${styles["switch"]} ${lost ? styles["lost"] : ""}`}
      data-switch={view.name}
    >
      <title>{`${view.name}${down ? ", down" : view.connected ? "" : ", not connected to the controller"}`}</title>
      <rect x={-27} y={-15} width={54} height={30} rx={5} />
      <text textAnchor="middle" dy="0.36em">
        {lost && "✕ "}
        {inBox(view.name, LETTERS)}
      </text>
      {mode && since && (
        <g className={styles["mode"]} transform="translate(0 31)" data-leaf={mode.leaf} data-mode={mode.mode}>
          <rect x={-52} y={-12} width={104} height={24} rx={12} />
          <text textAnchor="middle" dy="0.36em">
            {mode.mode === "on" ? "● ON" : "○ OFF"} {since}
          </text>
        </g>
      )}
    </g>
  );
});
