import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { continued } from "../api/known";
import type { LiveFlow } from "../api/schema";
import { useSource } from "../api/source";
import { useLive, useStore } from "../live/useLive";
import { type Listing, refreshed } from "./listing";
import { updates } from "./rows";

const LIVE_S = 60;

/**
 * Return all flows that the controller knows, newest first: its answer (every 15 s), and what the stream has sent
 * since.
 */
export function useAllFlows() {
  const queries = useQueryClient();
  const source = useSource();
  const queryKey = ["flows", source];
  const query = useQuery({
    queryKey,
    queryFn: ({ signal }) =>
      refreshed(source, continued<Listing>(queries, queryKey), signal, (soFar) =>
        queries.setQueryData(queryKey, soFar),
      ),
    refetchInterval: 15_000,
    structuralSharing: false,
  });
  const known = query.data?.flows ?? NONE;
  const byNumber = useMemo(() => new Map(known.map((flow) => [flow.id, flow])), [known]);
  const sample = useLive("flows", (store) => store.flows);
  const history = useStore().flowHistory;
  const live = useMemo(
    () =>
      updates(
        byNumber,
        history.recent(LIVE_S).map((trace) => trace.flow),
      ),
    // A sample says that the history has changed.
    [byNumber, history, sample],
  );
  const total = known.length + live.filter((flow) => !byNumber.has(flow.id)).length;
  return { query, known, live, total };
}

const NONE: readonly LiveFlow[] = [];
