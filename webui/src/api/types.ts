/** What the controller's stream of events sends; what its REST API answers is in schema.ts. Times ending in `at` are Unix
 * seconds. */

import type { EventsView, LinksView, LiveFlow, Problem } from "./schema";

export type TrafficClass = "short" | "long" | "control";
export type Mode = "on" | "off";
export type LinksSample = LinksView;
export type EventHead = EventsView["events"][number];

export interface FlowsSample {
  at: number;
  interval_s: number;
  flows: LiveFlow[];
  more: number;
}

export interface Hello {
  id: string;
  cursor: number;
  version: string;
  at: number;
  topics: string[];
  resumed: boolean;
}

/** A refusal as the page reads it: of an answer that is no problem document, too. */
export type Refusal = Pick<Problem, "title" | "status" | "detail"> & { field?: string };
