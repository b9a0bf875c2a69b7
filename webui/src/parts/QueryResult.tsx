import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Notice } from "./Notice";

/** A query's data, or its error. Old data stays while the query runs again. */
export function QueryResult<T>({
  query,
  what,
  children,
}: {
  query: UseQueryResult<T>;
  what: string;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) {
    return (
      <Notice title={`No ${what}`} kind="error">
        {query.error.message} <button onClick={() => void query.refetch()}>Try again</button>
      </Notice>
    );
  }
  return <p className="quiet">Asking for {what}…</p>;
}
