import { Button } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Notice } from "./Notice";
import { Quiet } from "./Quiet";

/** Show a query's data, or its error. Old data stays while the query runs again. */
export function QueryResult<T>({
  query,
  subject,
  children,
}: {
  query: UseQueryResult<T>;
  subject: string;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) {
    return (
      <Notice title={`No ${subject}`} kind="error">
        {query.error.message} <Button onClick={() => void query.refetch()}>Try again</Button>
      </Notice>
    );
  }
  return <Quiet>Asking for {subject}…</Quiet>;
}
