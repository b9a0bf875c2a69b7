import { Button, Fieldset, TextInput } from "@mantine/core";
import { count } from "../parts/units";
import { FieldRow } from "./FieldRow";
import { type Axis, listed } from "./submission";

interface Props {
  axes: readonly Axis[];
  edit: (axes: Axis[]) => void;
  /** Names of the spec's fields. */
  fields: readonly string[];
}

/** Edit the fields that take several values: every combination is a point, and all points are a single sweep. */
export function SweepAxes({ axes, edit, fields }: Props) {
  const put = (index: number, more: Partial<Axis>): void =>
    edit(axes.map((axis, place) => (place === index ? { ...axis, ...more } : axis)));
  return (
    <Fieldset legend="Sweep" px="sm" py={6}>
      {axes.map((axis, index) => (
        <FieldRow
          key={index}
          label="Field to sweep"
          placeholder="workload.flows.arrivals.load"
          field={axis.field}
          fields={fields}
          edit={(field) => put(index, { field })}
          removal={`Do not sweep ${axis.field || "this field"}`}
          remove={() => edit(axes.filter((_, place) => place !== index))}
          remark={count(listed(axis.values).length, "value")}
        >
          <TextInput
            aria-label="Values, with commas between"
            flex={1}
            placeholder="0.2, 0.4, 0.6"
            value={axis.values}
            onChange={(event) => put(index, { values: event.target.value })}
          />
        </FieldRow>
      ))}
      <Button mt={6} onClick={() => edit([...axes, { field: "", values: "" }])}>
        {axes.length === 0 ? "Try a field at several values" : "And another field"}
      </Button>
    </Fieldset>
  );
}
