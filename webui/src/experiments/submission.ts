/** What the form sends: a preset with what was changed, or a whole spec as text. */

export interface FieldChange {
  field: string;
  /** As typed; YAML's plain forms: numbers, true, false, null, else text. */
  value: string;
}

/** A field that takes several values, one point of a sweep each. */
export interface Axis {
  field: string;
  /** As typed, with commas between. */
  values: string;
}

export interface Draft {
  preset: string;
  /** The whole spec, once it is edited. */
  text: string | null;
  /** null: those of the preset. */
  schemes: string[] | null;
  repeats: string;
  seed: string;
  load: string;
  changes: FieldChange[];
  axes: Axis[];
  /** null: on switches where a worker takes labs, else in simulation. */
  kind: Kind | null;
  /** The window of runs on switches that is recorded packet by packet; null: none is. */
  record: RecordDraft | null;
}

/** Milliseconds of a run, as typed; from "": the first short flow. */
export interface RecordDraft {
  from: number | string;
  length: number | string;
}

/** On switches of a lab, or packet by packet. */
export type Kind = "lab" | "simulation";

/** What of the queue says which kinds it runs. */
type Slots = { workers: number; simulation_workers: number };

/** Return the kinds that a queue runs, the usual kind first; only labs while it is not known. */
export function kindsOf(queue: Slots | undefined): Kind[] {
  if (queue === undefined || queue.simulation_workers === 0) return ["lab"];
  return queue.workers === 0 ? ["simulation"] : ["lab", "simulation"];
}

/** Return the kind of which a draft would be submitted: that which was chosen, as long as the queue runs it. */
export const kindOf = ({ kind }: Draft, kinds: readonly Kind[]): Kind =>
  kind !== null && kinds.includes(kind) ? kind : (kinds[0] ?? "lab");

const LOAD = "workload.flows.arrivals.load";
/** A load and a rate of arrivals exclude each other. */
const RATE = "workload.flows.arrivals.rate_per_s";

export const untouched = (preset: string): Draft => ({
  preset,
  text: null,
  schemes: null,
  repeats: "",
  seed: "",
  load: "",
  changes: [],
  axes: [],
  kind: null,
  record: null,
});

export function typed(value: string): unknown {
  const text = value.trim();
  if (text === "") return "";
  if (text === "true" || text === "false") return text === "true";
  if (text === "null") return null;
  const number = Number(text);
  if (Number.isFinite(number)) return number;
  if (/^[[{"]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}

/** Return the values of a list in text: `0.2, 0.4` as [0.2, 0.4]. */
export const listed = (values: string): unknown[] =>
  values
    .split(",")
    .filter((text) => text.trim() !== "")
    .map(typed);

/** Return the body of `POST /experiments`; *kinds*: those that the queue runs. */
export function submission(draft: Draft, kinds: readonly Kind[]): Record<string, unknown> {
  const body: Record<string, unknown> = draft.text === null ? { preset: draft.preset } : { text: draft.text };
  if (kindOf(draft, kinds) === "simulation") body["kind"] = "simulation";
  else if (draft.record !== null) {
    const window = { from_ms: draft.record.from, for_ms: draft.record.length };
    body["record"] = Object.fromEntries(Object.entries(window).filter(([, ms]) => ms !== ""));
  }
  if (draft.repeats !== "") body["repeats"] = Number(draft.repeats);
  if (draft.seed !== "") body["seed"] = Number(draft.seed);
  if (draft.text !== null) return body;
  if (draft.schemes !== null) body["schemes"] = draft.schemes;
  const axes = draft.axes
    .map(({ field, values }) => ({ field: field.trim(), values: listed(values) }))
    .filter(({ field, values }) => field !== "" && values.length > 0);
  const set: Record<string, unknown> = {};
  const load = axes.find(({ field }) => field === LOAD)?.values[0] ?? (draft.load && typed(draft.load));
  if (load !== "") Object.assign(set, { [LOAD]: load, [RATE]: null });
  for (const change of draft.changes)
    if (change.field && change.value.trim()) set[change.field] = typed(change.value);
  if (Object.keys(set).length > 0) body["set"] = set;
  if (axes.length > 0) body["sweep"] = sweepOf(axes);
  return body;
}

/** Return axes in the short form, whose labels the controller finds; it refuses a field that is there twice. */
function sweepOf(axes: readonly { field: string; values: unknown[] }[]): unknown {
  const short = Object.fromEntries(axes.map(({ field, values }) => [field, values]));
  if (Object.keys(short).length === axes.length) return short;
  return axes.map(({ field, values }) => ({ label: field, fields: [field], values }));
}

/** Return whether the form has changes that are sent only while the spec is not edited as text. */
export function hasChangesForPreset(draft: Draft): boolean {
  const body = submission({ ...draft, text: null }, []);
  return ["schemes", "set", "sweep"].some((key) => key in body);
}
