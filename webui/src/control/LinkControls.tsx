import { useMutation, useQueryClient } from "@tanstack/react-query";
import { change } from "../api/client";
import { useFaults } from "../api/queries";
import type { Fault } from "../api/types";
import { useRole } from "../app/role";

/** Take a link down and up again: in labs, and for who may change things. */
export function LinkControls({ name, up }: { name: string; up: boolean }) {
  const faults = useFaults().data;
  const role = useRole();
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey: ["faults"] });
  const begin = useMutation({
    mutationFn: () => change<Fault>("POST", "/faults", { kind: "link-down", target: name }),
    onSettled: refresh,
  });
  const end = useMutation({
    mutationFn: (id: number) => change("DELETE", `/faults/${id}`),
    onSettled: refresh,
  });
  if (!faults?.possible || role !== "operate") return null;
  const mine = faults.faults.filter((fault) => fault.target === name);
  const error = begin.error ?? end.error;
  return (
    <div className="actions">
      {mine.map((fault) => (
        <button key={fault.id} disabled={end.isPending} onClick={() => end.mutate(fault.id)}>
          {fault.kind === "link-down" ? "Bring the link up again" : "Give the link its rate back"}
        </button>
      ))}
      {up && !mine.some((fault) => fault.kind === "link-down") && (
        <button disabled={begin.isPending} onClick={() => begin.mutate()}>
          Take the link down
        </button>
      )}
      {error && <p role="alert">{error.message}</p>}
    </div>
  );
}
