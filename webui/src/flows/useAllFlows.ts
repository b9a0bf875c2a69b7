import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { allFlows } from "../api/queries";
import { useLive, useStore } from "../live/useLive";
import { merged } from "./rows";

const LIVE_S = 60;

/** All flows that the controller knows, kept fresh by the stream; asked for anew every 15 s, for ends that it missed. */
export function useAllFlows() {
  const query = useQuery({
    queryKey: ["flows"],
    queryFn: ({ signal }) => allFlows("", signal),
    refetchInterval: 15_000,
  });
  const sample = useLive("flows", (store) => store.flows);
  const history = useStore().flowHistory;
  const flows = useMemo(
    () =>
      merged(
        query.data ?? [],
        history.recent(LIVE_S).map((trace) => trace.flow),
      ),
    // A sample says that the history has changed.
    [query.data, history, sample],
  );
  return { query, flows };
}
