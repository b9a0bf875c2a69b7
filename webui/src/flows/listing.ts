/** The controller's list of flows, brought up to date without asking for all of it again. */

import { get } from "../api/client";
import type { LiveFlow, LiveFlowsView } from "../api/schema";

const PAGE = 1_000;
/** Of flows that have ended unnoticed, so many pages are asked for at a time; the others wait for the next time. */
const MOST_PAGES = 10;
/** A little more than a controller keeps. */
const KEPT = 125_000;

const ask = (source: string, search: string, signal: AbortSignal): Promise<LiveFlowsView> =>
  get<LiveFlowsView>(`${source}/flows?limit=${PAGE}${search}`, signal);

/** Flows, newest first; `whole`: all that the controller knows, not only the newest of them. */
export interface Listing {
  flows: readonly LiveFlow[];
  whole: boolean;
}

/**
 * Return *before* as the controller has it now: flows that are new, those that are active, and those that were active
 * and have ended since. Where it was incomplete, return all flows; *publish* gets each part as it arrives.
 */
export async function refreshed(
  source: string,
  before: Listing | undefined,
  signal: AbortSignal,
  publish: (soFar: Listing) => void,
): Promise<Listing> {
  const top = await ask(source, "", signal);
  const known = before?.whole && goesOn(before.flows, top) ? before.flows : [];
  const newest = known[0]?.id ?? 0;
  const newFlows: LiveFlow[] = [];
  for (let page = top; ;) {
    const fresh = page.flows.filter((flow) => flow.id > newest);
    newFlows.push(...fresh);
    if (page.next === null || fresh.length < page.flows.length) break;
    if (known.length === 0 && newFlows.length % (10 * PAGE) === 0)
      publish({ flows: [...newFlows], whole: false });
    page = await ask(source, `&before=${page.next}`, signal);
  }
  const updates = await changed(source, known, top.flows, signal);
  const same = known.map((flow) => updates.get(flow.id) ?? flow);
  return { flows: [...newFlows, ...same].slice(0, KEPT), whole: true };
}

/** Return true if *known* is of this controller: numbers of another controller start again. */
function goesOn(known: readonly LiveFlow[], top: LiveFlowsView): boolean {
  return (top.flows[0]?.id ?? 0) >= (known[0]?.id ?? 0);
}

/**
 * Return what is known now of flows that count as active, or have ended and go on, as after a pause; of others, too.
 * *newest*: what has been asked for already.
 */
async function changed(
  source: string,
  known: readonly LiveFlow[],
  newest: readonly LiveFlow[],
  signal: AbortSignal,
): Promise<Map<number, LiveFlow>> {
  const open = new Set(known.filter((flow) => flow.state === "active").map((flow) => flow.id));
  const updates = new Map<number, LiveFlow>();
  const take = (flows: readonly LiveFlow[]): void => {
    for (const flow of flows) {
      open.delete(flow.id);
      updates.set(flow.id, flow);
    }
  };
  if (known.length === 0) return updates;
  take(newest);
  for (let before = ""; ;) {
    const page = await ask(source, `&state=active${before}`, signal);
    take(page.flows);
    if (page.next === null) break;
    before = `&before=${page.next}`;
  }
  for (let pages = 0; open.size > 0 && pages < MOST_PAGES; pages++) {
    const highest = Math.max(...open);
    take((await ask(source, `&before=${highest + 1}`, signal)).flows);
    open.delete(highest); // it is gone if it was not there
  }
  return updates;
}
