import styles from "./experiments.module.css";
import type { State } from "./types";

const SIGNS: Readonly<Record<State, string>> = {
  queued: "◌",
  running: "◐",
  cancelling: "◐",
  finished: "●",
  failed: "✕",
  cancelled: "⊘",
  interrupted: "⚠",
};

/** Draw a state as a sign and a word. */
export function StateMark({ state }: { state: State }) {
  return (
    <span className={styles["state"]} data-state={state}>
      {SIGNS[state]} {state}
    </span>
  );
}
