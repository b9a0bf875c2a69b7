import { memo } from "react";
import { useStore } from "../live/useLive";
import { beside, type Line, type Spot } from "./layout";
import { linkWords } from "./linkWords";
import { STEPS } from "./utilisation";
import styles from "./FabricMap.module.css";

interface Props extends Line {
  slow: boolean;
  /** Steps of utilisation of both directions. */
  ab: number;
  ba: number;
  /** Packets that wait where each direction begins, rounded as `queueMark` does. */
  abQueue: number;
  baQueue: number;
  chosen: boolean;
  choose: (name: string) => void;
  /** Whether the Tab key stops here. */
  stop: boolean;
}

/** One link: a line for each direction, on its left side; it is drawn again only when its step changes. */
export const LinkLine = memo(function LinkLine(props: Props) {
  const { name, from, to, a, b, up, slow, ab, ba, abQueue, baQueue, chosen, choose, stop } = props;
  const store = useStore();
  const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  return (
    <g
      className={styles["link"]}
      role="button"
      tabIndex={stop ? 0 : -1}
      aria-label={`Link ${name}${up ? "" : ", down"}${slow ? ", slowed" : ""}`}
      aria-pressed={chosen}
      data-link={name}
      data-state={up ? "up" : "down"}
      onPointerEnter={(event) => {
        // Samples come four times a second: only what is looked at is put into words, and nothing is drawn again.
        const now = store.linkHistory.of(name).at(-1);
        const title = event.currentTarget.querySelector("title");
        if (title) title.textContent = linkWords(name, from, to, now);
      }}
      onClick={() => choose(name)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose(name);
      }}
    >
      <title>{name}</title>
      <line className={styles["hit"]} x1={a.x} y1={a.y} x2={b.x} y2={b.y} />
      {up ? (
        <>
          <Direction from={a} to={b} step={ab} queue={abQueue} />
          <Direction from={b} to={a} step={ba} queue={baQueue} />
        </>
      ) : (
        <line className={styles["dashed"]} x1={a.x} y1={a.y} x2={b.x} y2={b.y} />
      )}
      {(!up || slow) && (
        <g transform={`translate(${middle.x} ${middle.y})`} className={styles["note"]}>
          <rect x={-30} y={-11} width={60} height={22} rx={11} />
          <text textAnchor="middle" dy="0.36em">
            {up ? "◷ slow" : "✕ down"}
          </text>
        </g>
      )}
    </g>
  );
});

const GAP = 0.8;

function Direction({ from, to, step, queue }: { from: Spot; to: Spot; step: number; queue: number }) {
  const width = STEPS[step]?.width ?? 1;
  const [start, end] = beside(from, to, GAP + width / 2);
  const share = 26 / (Math.hypot(to.x - from.x, to.y - from.y) || 1);
  return (
    <>
      <line
        className={`${styles["load"]} ${styles[`u${step}`]}`}
        data-step={step}
        x1={start.x}
        y1={start.y}
        x2={end.x}
        y2={end.y}
        strokeWidth={width}
      />
      {queue > 0 && (
        <circle
          className={styles["queue"]}
          cx={start.x + (end.x - start.x) * share}
          cy={start.y + (end.y - start.y) * share}
          r={queue}
        />
      )}
    </>
  );
}

/**
 * Return the radius of the dot that stands for *packets* waiting: 0 below 4, then with the square root, in whole units.
 */
export function queueMark(packets: number | null | undefined): number {
  return packets && packets >= 4 ? Math.min(10, Math.round(2 + Math.sqrt(packets) / 2)) : 0;
}
