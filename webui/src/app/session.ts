/** A browser's session, which may end while the page is open: after a night's sleep, by a new token, in another tab. */

import type { QueryClient } from "@tanstack/react-query";
import { endSession, RefusedError } from "../api/client";

const isOver = (error: unknown): boolean => error instanceof RefusedError && error.status === 401;

/** Call *over* whenever an answer says that the session is not valid, until what is returned is called. */
export function onSessionOver(queries: QueryClient, over: () => void): () => void {
  const ends = [
    queries.getQueryCache().subscribe((event) => {
      if (event.type === "updated" && event.action.type === "error" && isOver(event.action.error)) over();
    }),
    queries.getMutationCache().subscribe((event) => {
      if (event.type === "updated" && event.action.type === "error" && isOver(event.action.error)) over();
    }),
  ];
  return () => ends.forEach((end) => end());
}

/** End this browser's session; return why it goes on, "" where it has ended. */
export async function leave(): Promise<string> {
  try {
    await endSession();
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
