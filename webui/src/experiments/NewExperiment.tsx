import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useDeferredValue, useState } from "react";
import { change, RefusedError } from "../api/client";
import { useHas } from "../api/queries";
import { navigate } from "../app/location";
import { useRole } from "../app/role";
import { Asked } from "../parts/Asked";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { count, duration } from "../parts/units";
import { FieldChanges } from "./FieldChanges";
import { usePresets } from "./queries";
import { submission, type Draft } from "./submission";
import type { Check, Experiment, Preset, SpecProblem } from "./types";

/** Begin an experiment: a preset, changed as wanted, or a spec of one's own. */
export function NewExperiment() {
  const runs = useHas("/specs");
  const role = useRole();
  return (
    <Panel title="A new experiment">
      {runs === false && (
        <Notice title="This controller runs no experiments itself">
          ./capstan run small runs one and keeps it here; a controller started with --experiments runs them
          from this page.
        </Notice>
      )}
      {runs && role !== "operate" && (
        <Notice title="Your token is for looking only">The one in api-token may begin experiments.</Notice>
      )}
      {runs && role === "operate" && <Presets />}
    </Panel>
  );
}

function Presets() {
  return (
    <Asked query={usePresets()} what="list of presets">
      {({ presets }) => <Form presets={presets} />}
    </Asked>
  );
}

function Form({ presets }: { presets: readonly Preset[] }) {
  const first = presets.find((one) => one.name === "small") ?? presets[0];
  const [draft, setDraft] = useState<Draft>({
    preset: first?.name ?? "",
    text: null,
    schemes: null,
    repeats: "",
    seed: "",
    changes: [],
  });
  const queries = useQueryClient();
  const preset = presets.find((one) => one.name === draft.preset);
  const edit = (more: Partial<Draft>): void => setDraft({ ...draft, ...more });
  const asked = useDeferredValue(draft);
  const check = useQuery({
    queryKey: ["check", asked],
    queryFn: () => change<Check>("POST", "/experiments/check", submission(asked)),
    retry: false,
  });
  const begin = useMutation({
    mutationFn: () => change<Experiment>("POST", "/experiments", submission(draft)),
    onSuccess: (made) => {
      void queries.invalidateQueries({ queryKey: ["experiments"] });
      navigate(`/experiments/${made.id}`);
    },
  });
  const problems = problemsOf(begin.error) ?? check.data?.problems ?? problemsOf(check.error) ?? [];
  return (
    <form
      className="new-experiment"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        begin.mutate();
      }}
    >
      <label>
        Preset{" "}
        <select
          value={draft.preset}
          onChange={(event) => edit({ preset: event.target.value, text: null, schemes: null, changes: [] })}
        >
          {presets.map((one) => (
            <option key={one.name} value={one.name}>
              {one.name}: {one.title}
            </option>
          ))}
        </select>
      </label>
      {preset && <p className="quiet">{preset.description}</p>}
      {preset && draft.text === null && (
        <fieldset>
          <legend>Schemes</legend>
          {preset.schemes.map((name) => {
            const chosen = draft.schemes ?? preset.schemes;
            return (
              <label key={name}>
                <input
                  type="checkbox"
                  checked={chosen.includes(name)}
                  onChange={(event) =>
                    edit({
                      schemes: event.target.checked
                        ? preset.schemes.filter((one) => one === name || chosen.includes(one))
                        : chosen.filter((one) => one !== name),
                    })
                  }
                />{" "}
                {name}
              </label>
            );
          })}
        </fieldset>
      )}
      <div className="filters">
        <label>
          Repeats{" "}
          <input
            type="number"
            min={1}
            className="number"
            placeholder="as is"
            value={draft.repeats}
            onChange={(event) => edit({ repeats: event.target.value })}
          />
        </label>
        <label>
          Seed{" "}
          <input
            type="number"
            min={0}
            className="number"
            placeholder="as is"
            value={draft.seed}
            onChange={(event) => edit({ seed: event.target.value })}
          />
        </label>
      </div>
      {draft.text === null && <FieldChanges changes={draft.changes} edit={(changes) => edit({ changes })} />}
      <details
        onToggle={(event) =>
          edit({ text: event.currentTarget.open ? (draft.text ?? preset?.text ?? "") : null })
        }
      >
        <summary>Edit the whole spec as YAML</summary>
        <label className="unseen" htmlFor="spec-text">
          Spec as YAML
        </label>
        <textarea
          id="spec-text"
          rows={18}
          spellCheck={false}
          value={draft.text ?? ""}
          onChange={(event) => edit({ text: event.target.value })}
        />
      </details>
      <div role="status">
        {problems.length > 0 ? (
          <ul className="problems">
            {problems.map((problem, index) => (
              <li key={index}>
                ✕ {problem.line != null && `line ${problem.line}: `}
                {problem.field && <code>{problem.field}</code>} {problem.message}
              </li>
            ))}
          </ul>
        ) : (
          check.data && (
            <p>
              ✓ {count(check.data.runs, "run")}
              {check.data.points > 1 && ` at ${check.data.points} points`}
              {check.data.estimated_s !== null && `, about ${duration(Math.round(check.data.estimated_s))}`}
            </p>
          )
        )}
      </div>
      <button className="main" type="submit" disabled={begin.isPending || problems.length > 0}>
        Begin
      </button>
    </form>
  );
}

/** What the controller found wrong, or null where it did not answer that. */
function problemsOf(error: Error | null): SpecProblem[] | null {
  if (!(error instanceof RefusedError)) return null;
  const all = error.problem["problems"];
  if (Array.isArray(all)) return all as SpecProblem[];
  return [{ field: error.field ?? "", message: error.message }];
}
