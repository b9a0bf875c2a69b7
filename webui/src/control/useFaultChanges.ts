import { useMutation, useQueryClient } from "@tanstack/react-query";
import { change } from "../api/client";
import { askAgain } from "../api/known";
import type { FaultView } from "../api/schema";

export interface NewFault {
  kind: FaultView["kind"];
  target: string;
  rate_mbps?: number;
  delay_ms?: number;
}

/** Begin and end faults; what there are is asked for again after each. */
export function useFaultChanges() {
  const queries = useQueryClient();
  const refresh = () => askAgain(queries, { queryKey: ["faults"] });
  const begin = useMutation({
    mutationFn: (fault: NewFault) => change<FaultView>("POST", "/faults", fault),
    onSettled: refresh,
  });
  const end = useMutation({
    mutationFn: (id: number) => change("DELETE", `/faults/${id}`),
    onSettled: refresh,
  });
  return { begin, end, error: newestError(begin, end) };
}

/** Return the error of the newest request, or null: a later success supersedes earlier errors. */
export function newestError(...changes: { submittedAt: number; error: Error | null }[]): Error | null {
  return changes.reduce((newest, other) => (other.submittedAt > newest.submittedAt ? other : newest)).error;
}
