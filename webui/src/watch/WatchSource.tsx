import { Text, VisuallyHidden } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useLayoutEffect, useMemo } from "react";
import { follow } from "../api/known";
import { useRun } from "../api/queries";
import { RUN, SourceContext, useSource } from "../api/source";
import { connect } from "../live/connection";
import { LiveStore } from "../live/store";
import { LiveContext, useLive } from "../live/useLive";
import { connectionWords } from "../live/words";

/**
 * Provide the source of what is watched: the run that the queue executes, if it has a fabric of its own; else this
 * controller's fabric. Below another it is that one's, which has a stream already.
 */
export function WatchSource({ children }: { children: ReactNode }) {
  const { experiment, here } = useRun();
  const below = useSource() !== "";
  if (below || here || experiment === null) return children;
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
      <LiveContext value={store}>
        <RunStream />
        {children}
      </LiveContext>
    </SourceContext>
  );
}

/** Say where what is shown of a run is not of now: what the header says is of this controller's own stream. */
export function RunStream() {
  const connection = useLive("connection", (store) => store.connection);
  const isLate = connection === "old" || connection === "lost";
  const words = isLate ? `This run: ${connectionWords(connection, null)}` : "";
  return (
    <>
      {isLate && (
        <Text c="var(--warn)" aria-hidden="true">
          {words}
        </Text>
      )}
      <VisuallyHidden role="status">{words}</VisuallyHidden>
    </>
  );
}
