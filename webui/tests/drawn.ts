import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider, type QueryKey } from "@tanstack/react-query";
import { createElement, type ReactElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";

/** Answers by key of query; an Error is one that failed; what is not here is still being asked. */
export type Answers = readonly (readonly [QueryKey, unknown])[];

/** *page* as it is drawn first, as HTML. */
export async function drawn(page: ReactElement, answers: Answers = []): Promise<string> {
  const queries = new QueryClient({
    defaultOptions: { queries: { retry: false, retryOnMount: false, staleTime: Infinity } },
  });
  for (const [queryKey, answer] of answers) {
    const queryFn = () => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer));
    await queries.prefetchQuery({ queryKey, queryFn });
  }
  const themed = createElement(MantineProvider, null, page);
  return renderToStaticMarkup(createElement(QueryClientProvider, { client: queries }, themed));
}
