import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useDeferredValue, useId, useMemo, useState } from "react";
import { change, get } from "../api/client";
import { navigate } from "../app/location";
import { FieldChanges } from "./FieldChanges";
import { about, fieldOf, problemsOf } from "./problems";
import { SchemeChoice } from "./SchemeChoice";
import { schemaFields } from "./schemaFields";
import { SpecText } from "./SpecText";
import { submission, untouched, type Draft } from "./submission";
import { SweepAxes } from "./SweepAxes";
import type { CheckView, PresetView, WrongView } from "../api/schema";
import type { Experiment } from "./types";
import { Verdict } from "./Verdict";

/** A preset, changed as wanted, or a spec of one's own; the controller checks it at every change. */
export function ExperimentForm({ presets }: { presets: readonly PresetView[] }) {
  const first = presets.find((one) => one.name === "small") ?? presets[0];
  const [draft, setDraft] = useState<Draft>(untouched(first?.name ?? ""));
  const queries = useQueryClient();
  const preset = presets.find((candidate) => candidate.name === draft.preset);
  const edit = (more: Partial<Draft>): void => setDraft({ ...draft, ...more });
  const asked = useDeferredValue(draft);
  const check = useQuery({
    queryKey: ["check", asked],
    queryFn: () => change<CheckView>("POST", "/experiments/check", submission(asked)),
    retry: false,
    placeholderData: (before) => before,
  });
  const begin = useMutation({
    mutationFn: () => change<Experiment>("POST", "/experiments", submission(draft)),
    onSuccess: (made) => {
      void queries.invalidateQueries({ queryKey: ["experiments"] });
      navigate(`/experiments/${made.id}`);
    },
  });
  const schema = useQuery({
    queryKey: ["schema"],
    queryFn: ({ signal }) => get<unknown>("/specs/schema", signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const fields = useMemo(() => (schema.data ? schemaFields(schema.data) : []), [schema.data]);
  const names = useId();
  const problems: readonly WrongView[] =
    problemsOf(begin.error) ?? check.data?.problems ?? problemsOf(check.error) ?? [];
  const number = (key: "repeats" | "seed" | "load", words: string, limits: object) => {
    const wrong = about(problems, key === "load" ? "workload.flows.arrivals.load" : key).length > 0;
    return (
      <label>
        {words}{" "}
        <input
          type="number"
          className="number"
          placeholder="as is"
          aria-invalid={wrong}
          value={draft[key]}
          onChange={(event) => edit({ [key]: event.target.value })}
          {...limits}
        />
      </label>
    );
  };
  return (
    <form
      className="new-experiment"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        begin.mutate();
      }}
      onChange={() => begin.reset()}
    >
      <label>
        PresetView{" "}
        <select value={draft.preset} onChange={(event) => setDraft(untouched(event.target.value))}>
          {presets.map((preset) => (
            <option key={preset.name} value={preset.name}>
              {preset.name}: {preset.title}
            </option>
          ))}
        </select>
      </label>
      {preset && <p className="quiet">{preset.description}</p>}
      {preset && draft.text === null && (
        <SchemeChoice
          usual={preset.schemes}
          chosen={draft.schemes ?? preset.schemes}
          choose={(schemes) => edit({ schemes })}
        />
      )}
      <div className="filters">
        {number("repeats", "Repeats", { min: 1 })}
        {number("seed", "Seed", { min: 0 })}
        {draft.text === null && number("load", "Load, 0 to 1", { min: 0, step: "any" })}
      </div>
      <datalist id={names}>
        {fields.map((field) => (
          <option key={field.field} value={field.field}>
            {field.kind}
          </option>
        ))}
      </datalist>
      {draft.text === null && (
        <>
          <FieldChanges
            changes={draft.changes}
            edit={(changes) => edit({ changes })}
            fields={fields}
            names={names}
            wrong={(field) => about(problems, field).length > 0}
          />
          <SweepAxes axes={draft.axes} edit={(axes) => edit({ axes })} fields={names} />
        </>
      )}
      <details
        open={draft.text !== null}
        onToggle={(event) => {
          const open = event.currentTarget.open;
          if (open !== (draft.text !== null)) edit({ text: open ? (preset?.text ?? "") : null });
        }}
      >
        <summary>Edit the whole spec as YAML</summary>
        {draft.text !== null && (
          <SpecText text={draft.text} edit={(text) => edit({ text })} problems={problems} />
        )}
      </details>
      <div role="status">
        {problems.length > 0 ? (
          <ul className="problems">
            {problems.map((problem, index) => (
              <li key={index}>
                ✕ {problem.line != null && `line ${problem.line}: `}
                {fieldOf(problem) && (
                  <>
                    <code>{fieldOf(problem)}</code>:{" "}
                  </>
                )}
                {problem.message}
              </li>
            ))}
          </ul>
        ) : (
          check.data && <Verdict check={check.data} />
        )}
      </div>
      <button className="main" type="submit" disabled={begin.isPending || problems.length > 0}>
        {begin.isPending ? "Submitting …" : "Begin"}
      </button>
    </form>
  );
}
