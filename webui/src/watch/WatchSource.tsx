import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useLayoutEffect, useMemo } from "react";
import { follow } from "../api/known";
import { useRun } from "../api/queries";
import { RUN, SourceContext } from "../api/source";
import { connect } from "../live/connection";
import { LiveStore } from "../live/store";
import { LiveContext } from "../live/useLive";

/**
 * Provide the source of what is watched: the run that the queue executes, if it has a fabric of its own; else this
 * controller's fabric.
 */
export function WatchSource({ children }: { children: ReactNode }) {
  const { experiment, here } = useRun();
  if (here || experiment === null) return children;
  return (
    <Run key={experiment} experiment={experiment}>
      {children}
    </Run>
  );
}

function Run({ experiment, children }: { experiment: number; children: ReactNode }) {
  const queries = useQueryClient();
  const store = useMemo(() => new LiveStore(), []);
  useLayoutEffect(() => follow(queries, experiment), [queries, experiment]);
  useEffect(() => connect(store, queries, RUN), [store, queries]);
  return (
    <SourceContext value={RUN}>
      <LiveContext value={store}>{children}</LiveContext>
    </SourceContext>
  );
}
