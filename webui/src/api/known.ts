import type { QueryClient, QueryKey } from "@tanstack/react-query";

/**
 * Return the answer under *key* that the next one continues. undefined: there is none, or the stream has begun anew since
 * (live/connection.ts), perhaps at another controller, whose flows and experiments count from 1 again.
 */
export function continued<T>(queries: QueryClient, key: QueryKey): T | undefined {
  const state = queries.getQueryState<T>(key);
  return state?.isInvalidated ? undefined : state?.data;
}
