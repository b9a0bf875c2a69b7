/** What views ask the controller for; events of the stream say when to ask again (live/connection.ts). */

import { type DefaultOptions, keepPreviousData, useQuery } from "@tanstack/react-query";
import type { Connection } from "../live/store";
import { useLive } from "../live/useLive";
import { BASE, get, RefusedError } from "./client";
import type {
  FabricView,
  FaultsView,
  FlowDetail,
  Health,
  ModesView,
  RunView,
  SchemesView,
  SchemeView,
} from "./schema";
import { RUN, useSource } from "./source";

/** Return true if the controller repeats an answer: it refused the request. Where it did not answer, it may soon. */
export const isRefusal = (error: Error): boolean =>
  error instanceof RefusedError && error.status !== 0 && error.status < 500;

/** Return true if a request that failed with *error* is worth sending again. */
export function worthRetrying(failures: number, error: Error): boolean {
  return failures < 3 && !isRefusal(error);
}

/**
 * How queries and changes are sent. Always: a controller on this machine answers without any network, too, which is all
 * that the browser knows of.
 */
export const DEFAULTS: DefaultOptions = {
  queries: {
    retry: worthRetrying,
    staleTime: 2_000,
    refetchOnWindowFocus: false,
    refetchOnReconnect: true,
    networkMode: "always",
  },
  mutations: { networkMode: "always" },
};

/** Return when the description of the API is asked for again, in ms: until it has come. */
export const describedEveryMs = (state: { data: unknown; error: Error | null }): number | false =>
  state.data === undefined && state.error !== null ? 5_000 : false;

/** Return true if the description of this controller's API has *path* (`/specs`); undefined while it is not known. */
export function useHas(path: string): boolean | undefined {
  const document = useQuery({
    queryKey: ["openapi"],
    queryFn: ({ signal }) => get<{ paths: Record<string, unknown> }>("/openapi.json", signal),
    refetchInterval: ({ state }) => describedEveryMs(state),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return document.data && `${BASE}${path}` in document.data.paths;
}

/** What is shown of a run where the page has no stream of its events is asked for so often. */
const RUN_MS = 3_000;

/**
 * Return the answer of the watched controller; events of its stream trigger the next request. *everyMs*: where a run is
 * watched, the period of requests as well.
 */
function useWatched<T>(name: string, everyMs?: number) {
  const source = useSource();
  return useQuery({
    queryKey: [name, source],
    queryFn: ({ signal }) => get<T>(`${source}/${name}`, signal),
    refetchInterval: source === RUN && everyMs !== undefined ? everyMs : false,
  });
}

export const useHealth = () =>
  useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => get<Health>("/health", signal),
    refetchInterval: 10_000,
  });

/** Return when the fabric of a run is asked for again, in ms; undefined: events of the run's stream say when. */
export const fabricEveryMs = (connection: Connection): number | undefined =>
  connection === "live" ? undefined : RUN_MS;

export const useFabric = () =>
  useWatched<FabricView>("fabric", fabricEveryMs(useLive("connection", (store) => store.connection)));
export const useModes = () => useWatched<ModesView>("modes");
/** Return the scheme in force; of a run it is in the header, too, which has no stream of the run's events. */
export const useScheme = () => useWatched<SchemeView>("scheme", RUN_MS);
export const useFaults = () => useWatched<FaultsView>("faults");

/** Return the run that the queue executes now, where this controller has a queue. */
export function useRun(): RunView {
  const run = useQuery({
    queryKey: ["run"],
    queryFn: ({ signal }) => get<RunView>(RUN, signal),
    enabled: useHas(RUN) === true,
    refetchInterval: 2_000,
  });
  return run.data ?? NO_RUN;
}
const NO_RUN: RunView = { experiment: null, parent: null, here: false };

export const useSchemes = () =>
  useQuery({
    queryKey: ["schemes"],
    queryFn: ({ signal }) => get<SchemesView>("/schemes", signal),
    staleTime: 300_000,
  });

/**
 * Return when a flow is asked for again, in ms: twice a second while it lives, seldom once it has ended. false: there
 * is none.
 */
export function flowEveryMs(state: { data: FlowDetail | undefined; error: Error | null }): number | false {
  const { data, error } = state;
  if (error !== null) return isRefusal(error) ? false : 5_000;
  return data?.flow.state === "ended" ? 5_000 : 500;
}

/**
 * Return a flow in detail, asked for again as it lives. The flow before it stays until it has arrived.
 */
export function useFlowDetail(id: number) {
  const source = useSource();
  return useQuery({
    queryKey: ["flow", source, id],
    queryFn: ({ signal }) => get<FlowDetail>(`${source}/flows/${id}`, signal),
    refetchInterval: ({ state }) => flowEveryMs(state),
    placeholderData: keepPreviousData,
  });
}
