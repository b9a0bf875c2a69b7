/** What of earlier answers still counts. */

import type { QueryClient, QueryKey } from "@tanstack/react-query";
import { RUN } from "./source";

/**
 * Return the answer under *key* that the next one continues. undefined: there is none, or the stream has begun anew since
 * (live/connection.ts), perhaps at another controller, whose flows and experiments count from 1 again.
 */
export function continued<T>(queries: QueryClient, key: QueryKey): T | undefined {
  const state = queries.getQueryState<T>(key);
  return state?.isInvalidated ? undefined : state?.data;
}

/** Of which experiment the run was that was followed last. */
const FOLLOWED = new WeakMap<QueryClient, number>();

/** Forget what was known of another run than that of *experiment*: all runs have the same addresses. */
export function follow(queries: QueryClient, experiment: number): void {
  if (FOLLOWED.get(queries) === experiment) return;
  FOLLOWED.set(queries, experiment);
  void queries.resetQueries({ predicate: ({ queryKey }) => queryKey.includes(RUN) });
}
