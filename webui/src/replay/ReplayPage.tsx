import { useState } from "react";
import { useSearch } from "../app/location";
import { Notice } from "../parts/Notice";
import "./replay.css";
import { ReplayView } from "./ReplayView";
import { readTrace, type Trace, TraceError } from "./trace";

/** A recorded window of a simulated run, packet by packet. The file is read here and sent nowhere. */
export function ReplayPage() {
  const [search] = useSearch();
  const [trace, setTrace] = useState<Trace | null>(null);
  const [problem, setProblem] = useState("");

  async function open(file: File | undefined): Promise<void> {
    if (!file) return;
    try {
      setTrace(await readTrace(file));
      setProblem("");
    } catch (error) {
      setProblem(error instanceof TraceError ? error.message : String(error));
    }
  }

  const at = search.get("at");
  return (
    <div
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void open(event.dataTransfer.files[0]);
      }}
    >
      <p>
        <label>
          Recording <input type="file" onChange={(event) => void open(event.target.files?.[0])} />
        </label>
      </p>
      {problem && (
        <Notice title="This file cannot be played" kind="error">
          {problem}
        </Notice>
      )}
      {trace ? (
        <ReplayView key={`${trace.scheme} ${trace.beginPs} ${trace.hops.length}`} trace={trace} />
      ) : (
        <Notice title="No recording is open">
          Record one by ./capstan simulate small --scheme caps --trace caps.trace, and choose that file above,
          or drop it here.{at ? ` The link is to ${at} ms of the run.` : ""}
        </Notice>
      )}
    </div>
  );
}
