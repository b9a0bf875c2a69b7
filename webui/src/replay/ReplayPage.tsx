import { FileInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { getFile } from "../api/client";
import { useSearch } from "../app/location";
import { Command } from "../parts/Command";
import { Notice } from "../parts/Notice";
import { recordingPath } from "./address";
import { LastAsked } from "./lastAsked";
import { ReplayView } from "./ReplayView";
import { readTrace, type Trace } from "./trace";

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** What an address says of a run and a moment of it: nothing of a file. */
const NO_RUN = {
  experiment: null,
  scheme: null,
  repeat: null,
  from: null,
  for: null,
  at: null,
  flow: null,
};

/**
 * Replay a recorded window of a run, simulated or on switches, packet by packet: from a file, which is read here and
 * sent nowhere, or of a run that the address names (recorded on switches, or simulated again by the controller).
 */
export function ReplayPage() {
  const [search, change] = useSearch();
  const [trace, setTrace] = useState<Trace | null>(null);
  const [problem, setProblem] = useState("");

  const [reading] = useState(() => new LastAsked());
  const path = recordingPath(search);
  useEffect(() => {
    if (path === null) return;
    const leaving = new AbortController();
    setTrace(null);
    setProblem("");
    reading.ask(getFile(path, leaving.signal).then(readTrace), setTrace, (error) => {
      if (!leaving.signal.aborted) setProblem(wordsOf(error));
    });
    return () => leaving.abort();
  }, [path, reading]);

  function open(file: File | undefined): void {
    if (!file) return;
    const opened = (recorded: Trace): void => {
      if (path !== null) change(NO_RUN); // the address would show another reader that run
      setTrace(recorded);
      setProblem("");
    };
    reading.ask(readTrace(file), opened, (error) => setProblem(wordsOf(error)));
  }

  const timeMs = search.get("at");
  return (
    <div
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        open(event.dataTransfer.files[0]);
      }}
    >
      <FileInput
        label="Recording"
        placeholder="Choose a file"
        maw={420}
        mb="sm"
        onChange={(file) => open(file ?? undefined)}
      />
      {problem && (
        <Notice title={path === null ? "This file cannot be played" : "This cannot be played"} kind="error">
          {problem}
        </Notice>
      )}
      {trace ? (
        <ReplayView key={`${trace.scheme} ${trace.beginPs} ${trace.hops.length}`} trace={trace} />
      ) : path !== null && !problem ? (
        <Notice title="The run's packets are being fetched">
          A simulated run is simulated again for them; they are shown when it has ended.
        </Notice>
      ) : (
        <Notice title="No recording is open">
          Record one by <Command>./capstan simulate small --scheme caps --trace caps.trace</Command>, and
          choose that file above, or drop it here.{timeMs ? ` The link is to ${timeMs} ms of the run.` : ""}
        </Notice>
      )}
    </div>
  );
}
