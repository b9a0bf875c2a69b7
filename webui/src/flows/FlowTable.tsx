import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useMemo, useRef } from "react";
import type { LiveFlow } from "../api/schema";
import { bitRate, byteSize, duration, timeOfEvent } from "../parts/units";
import { useScale } from "../app/Appearance";
import styles from "./flows.module.css";
import { type Choice, type Column, lasted } from "./rows";

interface Props {
  rows: readonly LiveFlow[];
  choice: Choice;
  sortBy: (column: Column) => void;
  chosen: number | null;
  choose: (id: number) => void;
}

const ROW = 32;

/**
 * Return what places rows of *height* pixels. The virtualizer reckons places anew for another getItemKey alone, not for
 * another size.
 */
export const rowsOf = (height: number) => ({
  estimateSize: () => height,
  getItemKey: (index: number) => index,
});

export const SHOWN: readonly { column: Column; title: string; text: (flow: LiveFlow) => string }[] = [
  { column: "id", title: "flow", text: (flow) => String(flow.id) },
  { column: "source", title: "from", text: (flow) => flow.source },
  { column: "destination", title: "to", text: (flow) => flow.destination },
  { column: "destination_port", title: "port", text: (flow) => `${flow.protocol} ${flow.destination_port}` },
  { column: "traffic_class", title: "class", text: (flow) => flow.traffic_class },
  { column: "state", title: "state", text: (flow) => (flow.state === "active" ? "● active" : "ended") },
  {
    column: "started_at",
    title: "began",
    text: (flow) => timeOfEvent(flow.started_at, Date.now() / 1000),
  },
  { column: "lasted", title: "lasted", text: (flow) => duration(lasted(flow)) },
  { column: "bytes", title: "sent", text: (flow) => byteSize(flow.bytes) },
  {
    column: "bits_per_s",
    title: "rate",
    text: (flow) => (flow.state === "active" ? bitRate(flow.bits_per_s) : "–"),
  },
  { column: "paths", title: "paths", text: (flow) => String(Object.keys(flow.paths).length || "–") },
  { column: "recovered", title: "recovered", text: (flow) => String(flow.recovered) },
  { column: "lost", title: "lost", text: (flow) => String(flow.lost) },
  { column: "reordered", title: "reordered", text: (flow) => String(flow.reordered) },
];

/** Show flows as rows; only the visible rows are in the document. */
export function FlowTable({ rows, choice, sortBy, chosen, choose }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const height = ROW * useScale();
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    ...useMemo(() => rowsOf(height), [height]),
    overscan: 12,
    // Rows come with React's next frame, not within the browser's scroll event: there are some to spare.
    useFlushSync: false,
  });
  return (
    <div
      ref={frame}
      className={styles["frame"]}
      data-testid="flow-frame"
      tabIndex={0}
      role="region"
      aria-label="Flows"
    >
      <div role="table" aria-label="Flows" aria-rowcount={rows.length + 1} aria-colcount={SHOWN.length}>
        <div role="rowgroup" className={styles["head"]}>
          <div role="row" aria-rowindex={1} className={styles["row"]}>
            {SHOWN.map(({ column, title }) => {
              const sorted = choice.sort === column;
              return (
                <div
                  key={column}
                  role="columnheader"
                  aria-sort={sorted ? (choice.descending ? "descending" : "ascending") : "none"}
                >
                  <button onClick={() => sortBy(column)}>
                    {title}
                    {sorted && (choice.descending ? " ▼" : " ▲")}
                  </button>
                </div>
              );
            })}
          </div>
        </div>
        <div
          role="rowgroup"
          className={styles["body"]}
          data-testid="flow-body"
          style={{ height: virtual.getTotalSize() }}
        >
          {virtual.getVirtualItems().map((item) => {
            const flow = rows[item.index];
            if (!flow) return null;
            return (
              <FlowRow
                key={flow.id}
                flow={flow}
                index={item.index}
                start={item.start}
                chosen={flow.id === chosen}
                choose={choose}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  flow: LiveFlow;
  index: number;
  start: number;
  chosen: boolean;
  choose: (id: number) => void;
}

/** One flow; drawn again only when it has changed or moved: while the table scrolls most rows have not. */
const FlowRow = memo(function FlowRow({ flow, index, start, chosen, choose }: RowProps) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={chosen}
      className={styles["row"]}
      style={{ transform: `translateY(${start}px)` }}
      onClick={() => choose(flow.id)}
    >
      {SHOWN.map(({ column, text }) =>
        column === "id" ? (
          <div key={column} role="cell">
            <button onClick={() => choose(flow.id)}>{flow.id}</button>
          </div>
        ) : (
          <div key={column} role="cell" title={text(flow)}>
            {text(flow)}
          </div>
        ),
      )}
    </div>
  );
});
