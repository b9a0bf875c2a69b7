/** What views ask the controller for; events of the stream say when to ask again (live/connection.ts). */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { BASE, get, RefusedError } from "./client";
import type {
  FabricView,
  FaultsView,
  FlowDetail,
  Health,
  ModesView,
  SchemesView,
  SchemeView,
} from "./schema";

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

export const useHealth = () =>
  useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => get<Health>("/health", signal),
    refetchInterval: 10_000,
  });

export const useFabric = () =>
  useQuery({ queryKey: ["fabric"], queryFn: ({ signal }) => get<FabricView>("/fabric", signal) });

export const useModes = () =>
  useQuery({ queryKey: ["modes"], queryFn: ({ signal }) => get<ModesView>("/modes", signal) });

export const useScheme = () =>
  useQuery({ queryKey: ["scheme"], queryFn: ({ signal }) => get<SchemeView>("/scheme", signal) });

export const useSchemes = () =>
  useQuery({
    queryKey: ["schemes"],
    queryFn: ({ signal }) => get<SchemesView>("/schemes", signal),
    staleTime: 300_000,
  });

export const useFaults = () =>
  useQuery({ queryKey: ["faults"], queryFn: ({ signal }) => get<FaultsView>("/faults", signal) });

/** One flow in detail: asked twice a second while it lives, then now and then. The one before stays until it is there. */
export const useFlowDetail = (id: number) =>
  useQuery({
    queryKey: ["flow", id],
    queryFn: ({ signal }) => get<FlowDetail>(`/flows/${id}`, signal),
    refetchInterval: (query) => (query.state.data?.flow.state === "ended" ? 5_000 : 500),
    placeholderData: keepPreviousData,
  });
