import { FileInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { getFile } from "../api/client";
import { useSearch } from "../app/location";
import { Notice } from "../parts/Notice";
import { recordingPath } from "./address";
import { ReplayView } from "./ReplayView";
import { readTrace, type Trace, TraceError } from "./trace";

/**
 * Replay a recorded window of a run, simulated or on switches, packet by packet: from a file, which is read here and
 * sent nowhere, or of a run that the address names (recorded on switches, or simulated again by the controller).
 */
export function ReplayPage() {
  const [search] = useSearch();
  const [trace, setTrace] = useState<Trace | null>(null);
  const [problem, setProblem] = useState("");

  const path = recordingPath(search);
  useEffect(() => {
    if (path === null) return;
    const leaving = new AbortController();
    getFile(path, leaving.signal)
      .then(readTrace)
      .then((recorded) => {
        setTrace(recorded);
        setProblem("");
      })
      .catch((error: unknown) => {
        if (!leaving.signal.aborted) setProblem(error instanceof Error ? error.message : String(error));
      });
    return () => leaving.abort();
  }, [path]);

  async function open(file: File | undefined): Promise<void> {
    if (!file) return;
    try {
      setTrace(await readTrace(file));
      setProblem("");
    } catch (error) {
      setProblem(error instanceof TraceError ? error.message : String(error));
    }
  }

  const timeMs = search.get("at");
  return (
    <div
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void open(event.dataTransfer.files[0]);
      }}
    >
      <FileInput
        label="Recording"
        placeholder="Choose a file"
        maw={420}
        mb="sm"
        onChange={(file) => void open(file ?? undefined)}
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
          Record one by ./capstan simulate small --scheme caps --trace caps.trace, and choose that file above,
          or drop it here.{timeMs ? ` The link is to ${timeMs} ms of the run.` : ""}
        </Notice>
      )}
    </div>
  );
}
