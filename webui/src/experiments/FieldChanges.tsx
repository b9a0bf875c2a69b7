import type { SchemaField } from "./schemaFields";
import type { FieldChange } from "./submission";

interface Props {
  changes: readonly FieldChange[];
  edit: (changes: FieldChange[]) => void;
  /** What the spec's JSON Schema has, and the datalist with their names. */
  fields: readonly SchemaField[];
  names: string;
  wrong: (field: string) => boolean;
}

/** Single fields of the preset, changed. */
export function FieldChanges({ changes, edit, fields, names, wrong }: Props) {
  const put = (index: number, more: Partial<FieldChange>): void =>
    edit(changes.map((change, place) => (place === index ? { ...change, ...more } : change)));
  return (
    <fieldset>
      <legend>Other fields</legend>
      {changes.map((change, index) => {
        const known = fields.find((field) => field.field === change.field);
        return (
          <div key={index} className="field-change">
            <input
              aria-label="Field"
              list={names}
              placeholder="workload.flows.count"
              aria-invalid={wrong(change.field)}
              value={change.field}
              onChange={(event) => put(index, { field: event.target.value })}
            />
            <span aria-hidden="true">=</span>
            {known && known.choices.length > 0 ? (
              <select
                aria-label="Value"
                value={change.value}
                onChange={(event) => put(index, { value: event.target.value })}
              >
                <option value="" />
                {known.choices.map((choice) => (
                  <option key={choice}>{choice}</option>
                ))}
              </select>
            ) : (
              <input
                aria-label="Value"
                value={change.value}
                onChange={(event) => put(index, { value: event.target.value })}
              />
            )}
            <button
              type="button"
              aria-label={`Leave ${change.field || "this field"} as it is`}
              onClick={() => edit(changes.filter((_, place) => place !== index))}
            >
              ✕
            </button>
            {known && (
              <span className="quiet">
                {known.kind}
                {known.description && `: ${known.description}`}
              </span>
            )}
          </div>
        );
      })}
      <button type="button" onClick={() => edit([...changes, { field: "", value: "" }])}>
        Change another field
      </button>
    </fieldset>
  );
}
