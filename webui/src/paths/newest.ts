/** Which flow to show when none was chosen: the newest of its class, held long enough to be read. */

import type { FlowTrace } from "../live/flowHistory";
import { carriesData } from "./shares";

/** A shown flow is not replaced before it was shown this long. */
export const HELD_S = 4;
/** Flows with fewer packets say little of paths. */
const LEAST_PACKETS = 8;

export interface Held {
  id: number;
  since: number;
}

/**
 * Return the flow to show at *now* (s). An active long flow stays; a short flow is replaced by the next after HELD_S.
 * *traces*: newest number first. Without a sample (*now* null) there is none: what was shown may be another
 * controller's.
 */
export function newestOf(
  traces: readonly FlowTrace[],
  trafficClass: string,
  held: Held | null,
  now: number | null,
): Held | null {
  if (now === null) return null;
  const candidates = traces.filter(
    ({ flow }) =>
      flow.traffic_class === trafficClass &&
      Object.keys(flow.paths).length > 0 &&
      flow.packets >= LEAST_PACKETS &&
      carriesData(flow),
  );
  const shown = held && candidates.find(({ flow }) => flow.id === held.id);
  if (held && shown && trafficClass === "long") return held;
  // Either way: a controller's clock that was set back holds no flow for longer.
  if (held && Math.abs(now - held.since) < HELD_S) return held;
  const next = candidates[0];
  if (!next) return held; // what was seen last stays until there is another
  return held?.id === next.flow.id ? held : { id: next.flow.id, since: now };
}
