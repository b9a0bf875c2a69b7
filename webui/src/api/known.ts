/** What of earlier answers still counts. */

import type { QueryClient, QueryFilters, QueryKey } from "@tanstack/react-query";
import { RUN } from "./source";

/** Call *then* when the requests of *filters* that are open now have been answered, or have failed: once for each. */
function afterOpen(queries: QueryClient, filters: QueryFilters, then: (key: QueryKey) => void): void {
  for (const query of queries.getQueryCache().findAll(filters)) {
    if (query.state.fetchStatus === "idle") continue;
    const answered = () => then(query.queryKey);
    query.promise?.then(answered, answered);
  }
}

/**
 * Ask again for the answers of *filters*, as something has changed: what is open now may be of before it. *cancel*: drop
 * it, where there is an answer to show meanwhile; else wait for it, as events may come faster than answers.
 */
export function askAgain(queries: QueryClient, filters: QueryFilters, cancel = true): Promise<void> {
  afterOpen(queries, filters, (queryKey) => {
    void queries.invalidateQueries({ queryKey, exact: true }, { cancelRefetch: false });
  });
  return queries.invalidateQueries(filters, { cancelRefetch: cancel });
}

/**
 * Apply an event to the answer under *key*, and to that of a request that is open now, which may be of before it.
 * *changed* returns the answer with the event, or as it is where the event is older.
 */
export function amend<T>(queries: QueryClient, key: QueryKey, changed: (known: T) => T): void {
  const apply = () => queries.setQueryData<T>(key, (known) => known && changed(known));
  apply();
  afterOpen(queries, { queryKey: key, exact: true }, apply);
}

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
