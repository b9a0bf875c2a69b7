/** What views ask the controller for; events of the stream say when to ask again (live/connection.ts). */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
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

/** What the controller refused will be refused again; what it did not answer may be answered soon. */
export function worthRetrying(failures: number, error: Error): boolean {
  return failures < 3 && (!(error instanceof RefusedError) || error.status === 0 || error.status >= 500);
}

/** Whether this controller has *path* (`/specs`): its own description says so. undefined: not known yet. */
export function useHas(path: string): boolean | undefined {
  const document = useQuery({
    queryKey: ["openapi"],
    queryFn: ({ signal }) => get<{ paths: Record<string, unknown> }>("/openapi.json", signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return document.data && `${BASE}${path}` in document.data.paths;
}

/** A run's scheme is in the header, where the page has no stream of the run's events. */
const RUN_SCHEME_MS = 3_000;

/** What the watched controller answers; events of its stream say when to ask again. *everyMs*: of a run, so often, too. */
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

export const useFabric = () => useWatched<FabricView>("fabric");
export const useModes = () => useWatched<ModesView>("modes");
export const useScheme = () => useWatched<SchemeView>("scheme", RUN_SCHEME_MS);
export const useFaults = () => useWatched<FaultsView>("faults");

/** The run that the queue is at, where this controller has a queue. */
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

/** One flow in detail: asked twice a second while it lives, then now and then. The one before stays until it is there. */
export function useFlowDetail(id: number) {
  const source = useSource();
  return useQuery({
    queryKey: ["flow", source, id],
    queryFn: ({ signal }) => get<FlowDetail>(`${source}/flows/${id}`, signal),
    refetchInterval: (query) => (query.state.data?.flow.state === "ended" ? 5_000 : 500),
    placeholderData: keepPreviousData,
  });
}
