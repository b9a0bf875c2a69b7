import { STEPS } from "./utilisation";
import styles from "./FabricMap.module.css";

/** Explain the colours, widths and marks of the map. */
export function Legend({ modal }: { modal: boolean }) {
  return (
    <ul className={styles["legend"]} aria-label="Legend">
      {STEPS.map((step, index) => (
        <li key={step.from}>
          <svg width="34" height="12" aria-hidden="true">
            <line
              x1="2"
              x2="32"
              y1="6"
              y2="6"
              className={`${styles["load"]} ${styles[`u${index}`]}`}
              strokeWidth={step.width}
            />
          </svg>
          {step.words}
        </li>
      ))}
      <li>
        <svg width="16" height="16" aria-hidden="true">
          <circle cx="8" cy="8" r="6" className={styles["queue"]} />
        </svg>
        packets wait there
      </li>
      {modal && (
        <li>● ON: short flows are there, long ones keep to one path · ○ OFF: everything is sprayed</li>
      )}
    </ul>
  );
}
