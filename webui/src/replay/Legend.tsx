import { useScale } from "../app/Appearance";
import { MARKS, REBUILT, RELEASED } from "./draw";
import styles from "./Legend.module.css";

const NAMES: Readonly<Record<string, string>> = {
  short: "data of short flows",
  long: "data of long flows",
  repair: "repairs",
  acknowledgement: "acknowledgements and handshakes",
  feedback: "agents' feedback",
};

/** Explain the marks and bars. */
export function Legend() {
  const size = 14 * useScale();
  return (
    <ul className={styles["legend"]} aria-label="Marks">
      {Object.entries(MARKS).map(([name, { shape, colour }]) => (
        <li key={name}>
          <svg width={size} height={size} viewBox="-7 -7 14 14" aria-hidden="true" fill={`var(${colour})`}>
            {shape === "diamond" && <path d="M0-6 6 0 0 6-6 0z" />}
            {shape === "square" && <rect x="-2" y="-2" width="4" height="4" />}
            {shape === "circle" && <circle r="4" />}
            {shape === "dot" && <circle r="2" />}
          </svg>{" "}
          {NAMES[name]}
        </li>
      ))}
      <li>
        <svg width={(size * 24) / 14} height={size} viewBox="0 -7 24 14" aria-hidden="true">
          <path d="M0 0h24" stroke="var(--queue)" strokeWidth="6" />
        </svg>{" "}
        a queue; a full one reaches half of its link
      </li>
      <li>
        <svg width={size} height={size} viewBox="-7 -7 14 14" aria-hidden="true">
          <path d="M-5-5 5 5M5-5-5 5" stroke="var(--bad)" strokeWidth="2" />
        </svg>{" "}
        a drop
      </li>
      <li>
        <svg width={size} height={size} viewBox="-7 -7 14 14" aria-hidden="true">
          <circle r="4" fill="none" stroke={`var(${RELEASED})`} strokeWidth="1.5" />
        </svg>{" "}
        below a host: its agent handed it a packet
      </li>
      <li>
        <svg width={size} height={size} viewBox="-7 -7 14 14" aria-hidden="true">
          <path d="M0-7 7 6H-7z" fill={`var(${REBUILT})`} />
        </svg>{" "}
        one that it rebuilt from repairs
      </li>
    </ul>
  );
}
