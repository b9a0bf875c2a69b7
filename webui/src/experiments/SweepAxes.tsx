import type { Axis } from "./submission";
import { listed } from "./submission";
import { count } from "../parts/units";

interface Props {
  axes: readonly Axis[];
  edit: (axes: Axis[]) => void;
  /** Of the datalist with the names of fields. */
  fields: string;
}

/** Fields that take several values: every combination is a point of its own, and all points are one sweep. */
export function SweepAxes({ axes, edit, fields }: Props) {
  const put = (index: number, more: Partial<Axis>): void =>
    edit(axes.map((axis, place) => (place === index ? { ...axis, ...more } : axis)));
  return (
    <fieldset>
      <legend>Sweep</legend>
      {axes.map((axis, index) => (
        <div key={index} className="field-change">
          <input
            aria-label="Field to sweep"
            list={fields}
            placeholder="workload.flows.arrivals.load"
            value={axis.field}
            onChange={(event) => put(index, { field: event.target.value })}
          />
          <span aria-hidden="true">=</span>
          <input
            aria-label="Values, with commas between"
            placeholder="0.2, 0.4, 0.6"
            value={axis.values}
            onChange={(event) => put(index, { values: event.target.value })}
          />
          <button
            type="button"
            aria-label={`Do not sweep ${axis.field || "this field"}`}
            onClick={() => edit(axes.filter((_, place) => place !== index))}
          >
            ✕
          </button>
          <span className="quiet">{count(listed(axis.values).length, "value")}</span>
        </div>
      ))}
      <button type="button" onClick={() => edit([...axes, { field: "", values: "" }])}>
        {axes.length === 0 ? "Try a field at several values" : "And another field"}
      </button>
    </fieldset>
  );
}
