/** The recorded windows that the tour plays: the same flows under three schemes (simulation/tour.py). */

import { readTrace, type Trace } from "../replay/trace";
import caps from "./recordings/caps.trace?url";
import ecmp from "./recordings/ecmp.trace?url";
import rps from "./recordings/rps.trace?url";

const FILES = { ecmp, rps, caps } as const;

export type SchemeName = keyof typeof FILES;
export type Recordings = Readonly<Record<SchemeName, Trace>>;

export const SCHEMES = Object.keys(FILES) as SchemeName[];

export const NAMES: Readonly<Record<SchemeName, string>> = { ecmp: "ECMP", rps: "RPS", caps: "CAPS" };

/** Fetch all three; an Error says which cannot be read. */
export async function fetchRecordings(signal: AbortSignal): Promise<Recordings> {
  const [first, second, third] = await Promise.all([
    fetchRecording("ecmp", signal),
    fetchRecording("rps", signal),
    fetchRecording("caps", signal),
  ]);
  return { ecmp: first, rps: second, caps: third };
}

async function fetchRecording(scheme: SchemeName, signal: AbortSignal): Promise<Trace> {
  const answer = await fetch(FILES[scheme], { signal });
  if (!answer.ok)
    throw new Error(`The recording of ${NAMES[scheme]} is not there (status ${answer.status}).`);
  return readTrace(await answer.blob());
}
