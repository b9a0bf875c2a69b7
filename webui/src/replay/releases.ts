/** What agents handed to their hosts: as it came, or rebuilt from repairs before it had come. */

import type { Release, Trace } from "./trace";

export interface Released extends Release {
  /** It had been sent in the recording, and had not come yet or never came. */
  rebuilt: boolean;
}

/** When a data packet was sent first, and first came; ps from the window's begin. */
interface Journey {
  sent: number;
  came: number;
}

/** Return the releases of a recording, in their order. */
export function released(trace: Trace): Released[] {
  const journeys = journeysOf(trace);
  return trace.releases.map((release) => {
    const { at, flow, number, kind } = release;
    const journey = kind === "data" ? journeys.get(nameOf(flow.id, number)) : undefined;
    // What was sent before the window may have come before it, too.
    return { ...release, rebuilt: journey !== undefined && journey.sent <= at && journey.came > at };
  });
}

function journeysOf(trace: Trace): ReadonlyMap<string, Journey> {
  const journeys = new Map<string, Journey>();
  for (const { packet, link, offered, arrived } of trace.hops) {
    const sent = trace.packets[packet];
    const on = trace.links[link];
    if (!sent?.flow || !on || sent.kind !== "data") continue;
    const { id, source, destination } = sent.flow;
    const name = nameOf(id, sent.number);
    const known = journeys.get(name) ?? { sent: Number.POSITIVE_INFINITY, came: Number.POSITIVE_INFINITY };
    // TCP may have sent it again: the first copy counts.
    if (on.from === source) known.sent = Math.min(known.sent, offered);
    if (on.to === destination && arrived !== null) known.came = Math.min(known.came, arrived);
    journeys.set(name, known);
  }
  return journeys;
}

const nameOf = (flow: number, number: number): string => `${flow} ${number}`;
