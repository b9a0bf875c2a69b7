import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import type { EngineView, ExperimentsView, FlowRecord, ProgressView, SpecsView } from "../api/schema";
import { type Experiment, OVER } from "./types";

const MOST_FLOWS = 20_000;

/** Experiments, newest first, a page at a time. */
export const useExperiments = () =>
  useInfiniteQuery({
    queryKey: ["experiments", "list"],
    queryFn: ({ signal, pageParam }) =>
      get<ExperimentsView>(
        `/experiments?limit=50${pageParam === null ? "" : `&before=${pageParam}`}`,
        signal,
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: 10_000,
  });

export const useExperiment = (id: number) =>
  useQuery({
    queryKey: ["experiments", id],
    queryFn: ({ signal }) => get<Experiment>(`/experiments/${id}`, signal),
    refetchInterval: (query) => (query.state.data && OVER.includes(query.state.data.state) ? false : 1_500),
  });

export const usePresets = () =>
  useQuery({
    queryKey: ["specs"],
    queryFn: ({ signal }) => get<SpecsView>("/specs", signal),
    staleTime: 300_000,
  });

/** The queue: what runs, what waits. Events of the stream say when to ask again. */
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

/** Records of the flows of a finished experiment, up to 20 000 of them. */
export const useFlowRecords = (id: number, enabled: boolean) =>
  useQuery({
    queryKey: ["experiments", id, "flows"],
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const records: FlowRecord[] = [];
      let after = 0;
      while (records.length < MOST_FLOWS) {
        const page: { flows: FlowRecord[]; next: number | null } = await get(
          `/experiments/${id}/flows?limit=1000&after=${after}`,
          signal,
        );
        records.push(...page.flows);
        if (page.next === null) break;
        after = page.next;
      }
      return records;
    },
  });
