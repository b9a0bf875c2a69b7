import { useQuery } from "@tanstack/react-query";
import { useId, useMemo } from "react";
import { get } from "../api/client";
import { schemaFields } from "./schemaFields";
import type { FieldChange } from "./submission";

/** Single fields of the preset, changed: which there are, and what they take, the spec's JSON Schema says. */
export function FieldChanges({
  changes,
  edit,
}: {
  changes: readonly FieldChange[];
  edit: (changes: FieldChange[]) => void;
}) {
  const schema = useQuery({
    queryKey: ["schema"],
    queryFn: ({ signal }) => get<unknown>("/specs/schema", signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const fields = useMemo(() => (schema.data ? schemaFields(schema.data) : []), [schema.data]);
  const list = useId();
  const put = (index: number, more: Partial<FieldChange>): void =>
    edit(changes.map((one, at) => (at === index ? { ...one, ...more } : one)));
  return (
    <fieldset>
      <legend>Other fields</legend>
      <datalist id={list}>
        {fields.map((one) => (
          <option key={one.field} value={one.field}>
            {one.kind}
          </option>
        ))}
      </datalist>
      {changes.map((one, index) => {
        const known = fields.find((field) => field.field === one.field);
        return (
          <div key={index} className="field-change">
            <input
              aria-label="Field"
              list={list}
              placeholder="workload.flows.count"
              value={one.field}
              onChange={(event) => put(index, { field: event.target.value })}
            />
            <span aria-hidden="true">=</span>
            {known && known.choices.length > 0 ? (
              <select
                aria-label="Value"
                value={one.value}
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
                value={one.value}
                onChange={(event) => put(index, { value: event.target.value })}
              />
            )}
            <button
              type="button"
              aria-label={`Leave ${one.field || "this field"} as it is`}
              onClick={() => edit(changes.filter((_, at) => at !== index))}
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
