import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef } from "react";
import { useFabric } from "../api/queries";
import { useSource } from "../api/source";
import { useSearch } from "../app/location";
import { useLive, useStore } from "../live/useLive";
import { focusFirst } from "../parts/focus";
import { Column } from "../parts/Grid";
import { Notice } from "../parts/Notice";
import { ClassPaths } from "./ClassPaths";
import { FlowPaths } from "./FlowPaths";
import { FlowPicker } from "./FlowPicker";
import { type Held, newestOf } from "./newest";

/** Show the paths that packets took: by class, of the newest short and long flow, or of a chosen flow. */
export function PathsPage() {
  const [search, change] = useSearch();
  const chosen = Number(search.get("flow")) || null;
  const close = useCallback(() => {
    focusFirst("[data-picker=flow]");
    change({ flow: null });
  }, [change]);
  const short = useNewest("short");
  const long = useNewest("long");
  const known = useFabric().data !== undefined;
  return (
    <Column>
      <FlowPicker chosen={chosen} choose={(id) => change({ flow: id === null ? null : String(id) })} />
      <ClassPaths />
      {chosen !== null ? (
        <FlowPaths id={chosen} heading="The chosen flow" close={close} />
      ) : (
        <>
          {long !== null && <FlowPaths id={long} heading="A long flow" />}
          {short !== null && <FlowPaths id={short} heading="The newest short flow" />}
          {known && long === null && short === null && (
            <Notice title="No flow is on its way">
              Start some traffic: an experiment from Compare, or ./capstan exec h3 -- iperf3 -s -D, then
              ./capstan exec h1 -- iperf3 -c h3. Flows show here within a second.
            </Notice>
          )}
        </>
      )}
    </Column>
  );
}

const RECENT_S = 8;

function useNewest(trafficClass: string): number | null {
  const sample = useLive("flows", (store) => store.flows);
  const store = useStore();
  const queries = useQueryClient();
  const source = useSource();
  const held = useRef<Held | null>(null);
  return useMemo(() => {
    const isPending =
      sample &&
      held.current &&
      queries.getQueryState(["flow", source, held.current.id])?.status === "pending";
    if (isPending) return held.current!.id; // to replace it unseen would show nothing where answers take long
    held.current = newestOf(
      store.flowHistory.recent(RECENT_S),
      trafficClass,
      held.current,
      sample?.at ?? null,
    );
    return held.current?.id ?? null;
  }, [sample, store, queries, source, trafficClass]);
}
