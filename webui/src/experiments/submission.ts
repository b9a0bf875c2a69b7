/** What the form sends: a preset with what was changed, or a whole spec as text. */

export interface FieldChange {
  field: string;
  /** As typed; YAML's plain forms: numbers, true, false, null, else text. */
  value: string;
}

export interface Draft {
  preset: string;
  /** The whole spec, once it is edited. */
  text: string | null;
  /** null: those of the preset. */
  schemes: string[] | null;
  repeats: string;
  seed: string;
  changes: FieldChange[];
}

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

export function submission(draft: Draft): Record<string, unknown> {
  const body: Record<string, unknown> = draft.text === null ? { preset: draft.preset } : { text: draft.text };
  if (draft.text === null && draft.schemes !== null) body["schemes"] = draft.schemes;
  if (draft.repeats !== "") body["repeats"] = Number(draft.repeats);
  if (draft.seed !== "") body["seed"] = Number(draft.seed);
  const set =
    draft.text === null ? draft.changes.filter((one) => one.field !== "" && one.value.trim() !== "") : [];
  if (set.length > 0) body["set"] = Object.fromEntries(set.map((one) => [one.field, typed(one.value)]));
  return body;
}
