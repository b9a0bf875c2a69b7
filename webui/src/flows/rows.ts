/** Which flows the table shows, and in what order: plain data, so that 100 000 of them are no matter. */

import type { LiveFlow } from "../api/types";
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

/** The choice that an address holds; what it does not know is left out. */
export function choiceOf(search: URLSearchParams): Choice {
  const sort = search.get("sort") ?? "-id";
  const name = sort.replace(/^-/, "") as Column;
  return {
    text: search.get("q") ?? "",
    trafficClass: search.get("class") ?? "",
    state: search.get("state") ?? "",
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

const COLLATOR = new Intl.Collator("en", { numeric: true });

export function chosenRows(flows: readonly LiveFlow[], choice: Choice): LiveFlow[] {
  const words = choice.text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = flows.filter(
    (flow) =>
      (!choice.trafficClass || flow.traffic_class === choice.trafficClass) &&
      (!choice.state || flow.state === choice.state) &&
      (choice.acks || carriesData(flow)) &&
      words.every((word) => matches(flow, word)),
  );
  const turn = choice.descending ? -1 : 1;
  return rows.sort((one, other) => {
    const [a, b] = [value(one, choice.sort), value(other, choice.sort)];
    const order =
      typeof a === "number" && typeof b === "number" ? a - b : COLLATOR.compare(String(a), String(b));
    return order === 0 ? other.id - one.id : turn * order;
  });
}

function matches(flow: LiveFlow, word: string): boolean {
  const [from, to] = word.split(">", 2);
  if (to !== undefined) return (!from || flow.source === from) && (!to || flow.destination === to);
  return (
    flow.source.toLowerCase() === word ||
    flow.destination.toLowerCase() === word ||
    flow.protocol === word ||
    String(flow.source_port) === word ||
    String(flow.destination_port) === word ||
    String(flow.id) === word
  );
}

/** *known* with what the stream told since: newer news win, flows that are new come on top. */
export function merged(known: readonly LiveFlow[], live: readonly LiveFlow[]): LiveFlow[] {
  const newer = new Map(live.map((flow) => [flow.id, flow]));
  const all = known.map((flow) => {
    const news = newer.get(flow.id);
    newer.delete(flow.id);
    return news && news.last_at >= flow.last_at ? news : flow;
  });
  return [...newer.values(), ...all];
}
