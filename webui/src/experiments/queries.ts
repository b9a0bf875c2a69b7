import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { get } from "../api/client";
import { continued } from "../api/known";
import { isRefusal } from "../api/queries";
import type {
  EngineView,
  FlowRecord,
  ListedExperimentsView,
  ProgressView,
  SimulatedLinksView,
  SpecsView,
} from "../api/schema";
import { type Experiment, OVER } from "./types";

/** Records of an experiment that are drawn. */
export const MOST_FLOWS = 20_000;

/** Return what lists show of experiments, newest first, a page at a time. */
export const useExperiments = () =>
  useInfiniteQuery({
    queryKey: ["experiments", "list"],
    queryFn: ({ signal, pageParam }) =>
      get<ListedExperimentsView>(
        `/experiments/heads?limit=50${pageParam === null ? "" : `&before=${pageParam}`}`,
        signal,
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: 10_000,
  });

/** Return when an experiment is asked for again, in ms; false: it is over, or there is none (events ask again). */
export function experimentEveryMs(state: {
  data: Experiment | undefined;
  error: Error | null;
}): number | false {
  const { data, error } = state;
  const isDone = data ? OVER.includes(data.state) : error !== null && isRefusal(error);
  return isDone ? false : 1_500;
}

export const useExperiment = (id: number) =>
  useQuery({
    queryKey: ["experiments", id],
    queryFn: ({ signal }) => get<Experiment>(`/experiments/${id}`, signal),
    refetchInterval: ({ state }) => experimentEveryMs(state),
  });

export const usePresets = () =>
  useQuery({
    queryKey: ["specs"],
    queryFn: ({ signal }) => get<SpecsView>("/specs", signal),
    staleTime: 300_000,
  });

/** Return the queue: what runs, what waits. Events of the stream trigger the next request. */
export const useEngine = () =>
  useQuery({
    queryKey: ["engine"],
    queryFn: ({ signal }) => get<EngineView>("/engine", signal),
    refetchInterval: 10_000,
    retry: false,
  });

export const useProgress = (id: number, running: boolean) =>
  useQuery({
    queryKey: ["experiments", id, "progress"],
    queryFn: ({ signal }) => get<ProgressView>(`/experiments/${id}/progress`, signal),
    enabled: running,
    refetchInterval: 1_000,
    retry: false,
  });

/** Return the run of an experiment that is simulated now, with its fabric and what links carry. */
export const useSimulatedRun = (id: number) =>
  useQuery({
    queryKey: ["simulated run", id],
    queryFn: async ({ signal }) => (await get<SimulatedLinksView>(`/experiments/${id}/links`, signal)).run,
    refetchInterval: 1_000,
    retry: false,
  });

/**
 * Return the first 20 000 records of the flows of an experiment's finished *runs* (their number), asked for again once
 * another run has finished.
 */
export function useFlowRecords(id: number, runs: number) {
  const queries = useQueryClient();
  const soFar = ["flow-records", id, "so far"];
  return useQuery<FlowRecord[]>({
    queryKey: ["flow-records", id, runs],
    enabled: runs > 0,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (before, query) => (query?.queryKey[1] === id ? before : undefined),
    queryFn: async ({ signal }) => {
      let records = continued<FlowRecord[]>(queries, soFar) ?? [];
      while (records.length < MOST_FLOWS) {
        const page: { flows: FlowRecord[]; next: number | null } = await get(
          `/experiments/${id}/flows?limit=1000&after=${records.at(-1)?.id ?? 0}`,
          signal,
        );
        records = [...records, ...page.flows];
        queries.setQueryData(soFar, records); // another run may end before all pages are here
        if (page.next === null) break;
      }
      return records;
    },
  });
}
