/** When the scheme was changed, as far as the controller still knows. */

import { get } from "../api/client";
import type { EventsView } from "../api/schema";
import type { EventHead } from "../api/types";

export interface SchemeChanges {
  events: readonly EventHead[];
  /** Unix seconds from which on no change is missing; 0: none is missing at all. */
  since: number;
}

/**
 * Ask for the changes of the scheme. A controller keeps its newest events, of all topics together: among many changes
 * of modes that of the scheme in force may be gone.
 */
export async function schemeChanges(source: string, signal: AbortSignal): Promise<SchemeChanges> {
  const { events } = await get<EventsView>(`${source}/events?topics=scheme&limit=10000`, signal);
  // After them: what goes meanwhile is of before the oldest that is left.
  const [oldest] = (await get<EventsView>(`${source}/events?limit=1`, signal)).events;
  return { events, since: oldest && oldest.cursor > 1 ? oldest.at : 0 };
}
