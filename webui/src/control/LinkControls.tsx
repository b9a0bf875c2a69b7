import { useState } from "react";
import { useFaults } from "../api/queries";
import { useRole } from "../app/role";
import { useFaultChanges } from "./useFaultChanges";

/** Take a link down, slow it, and undo both: in labs, and for who may change things. */
export function LinkControls({ name, up, rateMbps }: { name: string; up: boolean; rateMbps: number | null }) {
  const faults = useFaults().data;
  const role = useRole();
  const { begin, end, error } = useFaultChanges();
  const [rate, setRate] = useState(rateMbps === null ? "1" : String(rateMbps / 5));
  if (!faults?.possible || role !== "operate") return null;
  const mine = faults.faults.filter((fault) => fault.target === name);
  const busy = begin.isPending || end.isPending;
  return (
    <div className="actions">
      {mine.map((fault) => (
        <button key={fault.id} disabled={busy} onClick={() => end.mutate(fault.id)}>
          {fault.kind === "link-down" ? "Bring the link up again" : "Give the link its own rate back"}
        </button>
      ))}
      {up && (
        <button disabled={busy} onClick={() => begin.mutate({ kind: "link-down", target: name })}>
          Take the link down
        </button>
      )}
      {up && !mine.some((fault) => fault.kind === "slow-link") && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            begin.mutate({ kind: "slow-link", target: name, rate_mbps: Number(rate) });
          }}
        >
          <label>
            <span className="unseen">Rate in Mbit/s</span>
            <input
              type="number"
              className="number"
              min={0.1}
              step="any"
              value={rate}
              onChange={(event) => setRate(event.target.value)}
            />{" "}
            Mbit/s
          </label>{" "}
          <button type="submit" disabled={busy || !(Number(rate) > 0)}>
            Slow the link to that
          </button>
        </form>
      )}
      {error && <p role="alert">{error.message}</p>}
    </div>
  );
}
