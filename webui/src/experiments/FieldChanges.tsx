import { Button, Fieldset, NativeSelect, TextInput } from "@mantine/core";
import { FieldRow } from "./FieldRow";
import type { SchemaField } from "./schemaFields";
import type { FieldChange } from "./submission";

interface Props {
  changes: readonly FieldChange[];
  edit: (changes: FieldChange[]) => void;
  /** What the spec's JSON Schema has. */
  fields: readonly SchemaField[];
  wrong: (field: string) => boolean;
}

/** Edit single fields of the preset. */
export function FieldChanges({ changes, edit, fields, wrong }: Props) {
  const put = (index: number, more: Partial<FieldChange>): void =>
    edit(changes.map((change, place) => (place === index ? { ...change, ...more } : change)));
  const names = fields.map(({ field }) => field);
  return (
    <Fieldset legend="Other fields" px="sm" py={6}>
      {changes.map((change, index) => {
        const known = fields.find((field) => field.field === change.field);
        return (
          <FieldRow
            key={index}
            label="Field"
            placeholder="workload.flows.count"
            field={change.field}
            fields={names}
            wrong={wrong(change.field)}
            edit={(field) => put(index, { field })}
            removal={`Leave ${change.field || "this field"} as it is`}
            remove={() => edit(changes.filter((_, place) => place !== index))}
            remark={known ? [known.kind, known.description].filter(Boolean).join(": ") : ""}
          >
            {known && known.choices.length > 0 ? (
              <NativeSelect
                aria-label="Value"
                flex={1}
                value={change.value}
                onChange={(event) => put(index, { value: event.target.value })}
                data={[...new Set(["", change.value, ...known.choices])]}
              />
            ) : (
              <TextInput
                aria-label="Value"
                flex={1}
                value={change.value}
                onChange={(event) => put(index, { value: event.target.value })}
              />
            )}
          </FieldRow>
        );
      })}
      <Button mt={6} onClick={() => edit([...changes, { field: "", value: "" }])}>
        Change another field
      </Button>
    </Fieldset>
  );
}
