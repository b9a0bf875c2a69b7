/** Which flows the table shows, and in what order: plain data, so that 100 000 of them are no matter. */

import type { LiveFlow } from "../api/schema";
import { natural } from "../parts/order";
import { carriesData } from "../paths/shares";

export const COLUMNS = [
  "id",
  "source",
  "destination",
  "destination_port",
  "traffic_class",
  "state",
  "started_at",
  "lasted",
  "bytes",
  "bits_per_s",
  "paths",
  "recovered",
  "lost",
  "reordered",
] as const;
export type Column = (typeof COLUMNS)[number];
const TEXTS = ["source", "destination", "traffic_class", "state"] as const;
const isText = (column: Column): column is (typeof TEXTS)[number] =>
  (TEXTS as readonly Column[]).includes(column);

export interface Choice {
  /** Words that must all be found: a host's name, `h1>h5`, a port, a protocol. */
  text: string;
  trafficClass: string;
  state: string;
  /** Bare acknowledgements are left out unless asked for. */
  acks: boolean;
  sort: Column;
  descending: boolean;
}

export const CLASSES: readonly string[] = ["short", "long", "control"];
export const STATES: readonly string[] = ["active", "ended"];
const known = (values: readonly string[], value: string | null): string =>
  values.includes(value ?? "") ? (value ?? "") : "";

/** Return the choice that an address holds, without fields that are not known. */
export function choiceOf(search: URLSearchParams): Choice {
  const sort = search.get("sort") ?? "-id";
  const name = sort.replace(/^-/, "") as Column;
  return {
    text: search.get("q") ?? "",
    trafficClass: known(CLASSES, search.get("class")),
    state: known(STATES, search.get("state")),
    acks: search.get("acks") === "1",
    sort: COLUMNS.includes(name) ? name : "id",
    descending: COLUMNS.includes(name) ? sort.startsWith("-") : true,
  };
}

export const lasted = (flow: LiveFlow): number => Math.max(0, flow.last_at - flow.started_at);

const value = (flow: LiveFlow, column: Column): string | number => {
  if (column === "lasted") return lasted(flow);
  if (column === "paths") return Object.keys(flow.paths).length;
  return flow[column];
};

/** Return flows that *choice* lets pass, in its order. */
export function chosenRows(flows: readonly LiveFlow[], choice: Choice): LiveFlow[] {
  const words = choice.text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = flows.filter(
    (flow) =>
      (!choice.trafficClass || flow.traffic_class === choice.trafficClass) &&
      (!choice.state || flow.state === choice.state) &&
      (choice.acks || carriesData(flow)) &&
      words.every((word) => matches(flow, word)),
  );
  return rows.sort(before(rows, choice));
}

/** Return the order of *choice*. Texts of *flows* are prepared once each, not once a comparison. */
function before(flows: readonly LiveFlow[], choice: Choice): (left: LiveFlow, right: LiveFlow) => number {
  const { sort } = choice;
  const turn = choice.descending ? -1 : 1;
  if (sort === "id") return (left, right) => turn * (left.id - right.id);
  if (!isText(sort)) {
    return (left, right) =>
      turn * (Number(value(left, sort)) - Number(value(right, sort))) || right.id - left.id;
  }
  const texts = new Set(flows.map((flow) => flow[sort]));
  const places = new Map([...texts].sort(natural).map((text, index) => [text, index]));
  const key = (flow: LiveFlow): number => places.get(flow[sort]) ?? 0;
  return (left, right) => turn * (key(left) - key(right)) || right.id - left.id;
}

/**
 * Return *rows* with updates of some of them: those in *live* move to their new place. Both come from `chosenRows` of
 * the same choice; *updated* are the numbers of all updated flows, whether the choice lets them pass or not. Takes time
 * linear in the rows, as it does not sort them again.
 */
export function withUpdates(
  rows: readonly LiveFlow[],
  live: readonly LiveFlow[],
  updated: ReadonlySet<number>,
  choice: Choice,
): LiveFlow[] {
  const order = before([...rows, ...live], choice);
  const all: LiveFlow[] = [];
  let next = 0;
  for (const row of rows) {
    if (updated.has(row.id)) continue;
    let update = live[next];
    while (update && order(update, row) <= 0) {
      all.push(update);
      update = live[++next];
    }
    all.push(row);
  }
  for (; next < live.length; next++) all.push(live[next] as LiveFlow);
  return all;
}

function matches(flow: LiveFlow, word: string): boolean {
  const [source, destination] = [flow.source.toLowerCase(), flow.destination.toLowerCase()];
  const [from, to] = word.split(">", 2);
  if (to !== undefined) return (!from || source === from) && (!to || destination === to);
  return (
    source === word ||
    destination === word ||
    flow.protocol === word ||
    String(flow.source_port) === word ||
    String(flow.destination_port) === word ||
    String(flow.id) === word
  );
}

/** Return those of *live* that are no older than what is known of them. */
export function updates(known: ReadonlyMap<number, LiveFlow>, live: readonly LiveFlow[]): LiveFlow[] {
  return live.filter((flow) => flow.last_at >= (known.get(flow.id)?.last_at ?? 0));
}

/** Return *known* (newest first) with updates of some of them, and flows that are newer. */
export function merged(known: readonly LiveFlow[], live: readonly LiveFlow[]): LiveFlow[] {
  const newer = new Map(live.map((flow) => [flow.id, flow]));
  const all = known.map((flow) => {
    const update = newer.get(flow.id);
    newer.delete(flow.id);
    return update ?? flow;
  });
  return [...newer.values(), ...all];
}
