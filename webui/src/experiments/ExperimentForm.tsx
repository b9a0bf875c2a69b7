import { Button, Checkbox, Code, Group, List, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useDeferredValue, useMemo, useState } from "react";
import { change, get } from "../api/client";
import { askAgain } from "../api/known";
import { worthRetrying } from "../api/queries";
import { navigateFrom, useSearch } from "../app/location";
import styles from "./experiments.module.css";
import { FieldChanges } from "./FieldChanges";
import { Quiet } from "../parts/Quiet";
import { about, fieldOf, verdictOf } from "./problems";
import { RecordPackets } from "./RecordPackets";
import { SchemeChoice } from "./SchemeChoice";
import { schemaFields } from "./schemaFields";
import { SpecText } from "./SpecText";
import { useEngine } from "./queries";
import {
  hasChangesForPreset,
  kindOf,
  kindsOf,
  submission,
  untouched,
  type Draft,
  type Kind,
} from "./submission";
import { SweepAxes } from "./SweepAxes";
import type { CheckView, PresetView } from "../api/schema";
import type { Experiment } from "./types";
import { Verdict } from "./Verdict";

const KINDS: Record<Kind, string> = {
  lab: "on switches, in a lab",
  simulation: "in simulation, packet by packet",
};

/** A check without an answer is asked for again so much later. */
const UNANSWERED_MS = 3_000;

/** Edit a preset, changed as wanted, or a spec of the user's own; the controller checks it at every change. */
export function ExperimentForm({ presets }: { presets: readonly PresetView[] }) {
  const [search] = useSearch();
  const wanted = search.get("preset") ?? "small";
  const first = presets.find((preset) => preset.name === wanted) ?? presets[0];
  const [draft, setDraft] = useState<Draft>(untouched(first?.name ?? ""));
  // By preset: neither unchecking the box nor choosing another preset must lose it.
  const [editedText, setEditedText] = useState<Record<string, string>>({});
  const queries = useQueryClient();
  const preset = presets.find((candidate) => candidate.name === draft.preset);
  const put = (changed: Draft): void => {
    begin.reset();
    setDraft(changed);
  };
  const edit = (more: Partial<Draft>): void => put({ ...draft, ...more });
  const keepText = (): void => {
    if (draft.text !== null) setEditedText({ ...editedText, [draft.preset]: draft.text });
  };
  const engine = useEngine().data;
  const kinds = kindsOf(engine);
  const checked = useDeferredValue(draft);
  const check = useQuery({
    queryKey: ["check", checked, kinds],
    queryFn: () => change<CheckView>("POST", "/experiments/check", submission(checked, kinds)),
    retry: false,
    refetchInterval: ({ state }) => (state.error && worthRetrying(0, state.error) ? UNANSWERED_MS : false),
    placeholderData: (before) => before,
  });
  const begin = useMutation({
    mutationFn: () => change<Experiment>("POST", "/experiments", submission(draft, kinds)),
    onSuccess: (made) => {
      void askAgain(queries, { queryKey: ["experiments"] });
      navigateFrom("/compare", `/compare/${made.id}`);
    },
  });
  const schema = useQuery({
    queryKey: ["schema"],
    queryFn: ({ signal }) => get<unknown>("/specs/schema", signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const fields = useMemo(() => (schema.data ? schemaFields(schema.data) : []), [schema.data]);
  const { problems, mayBegin } = verdictOf(begin.error, check.data, check.error);
  const number = (key: "repeats" | "seed" | "load", words: string, limits: object) => {
    const wrong = about(problems, key === "load" ? "workload.flows.arrivals.load" : key).length > 0;
    return (
      <TextInput
        type="number"
        label={words}
        placeholder="as is"
        error={wrong}
        w={110}
        value={draft[key]}
        onChange={(event) => edit({ [key]: event.target.value })}
        {...limits}
      />
    );
  };
  return (
    <Stack
      component="form"
      gap="xs"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        begin.mutate();
      }}
    >
      <NativeSelect
        label="Preset"
        value={draft.preset}
        onChange={(event) => {
          const name = event.target.value;
          keepText();
          put({ ...untouched(name), kind: draft.kind, text: editedText[name] || null });
        }}
        data={presets.map(({ name, title }) => ({ value: name, label: `${name}: ${title}` }))}
      />
      {search.has("preset") && first?.name !== wanted && <Quiet>There is no preset {wanted} here.</Quiet>}
      {preset && <Text c="dimmed">{preset.description}</Text>}
      {kinds.length > 1 ? (
        <NativeSelect
          label="Runs"
          value={kindOf(draft, kinds)}
          onChange={(event) => edit({ kind: event.target.value as Kind })}
          data={kinds.map((kind) => ({ value: kind, label: KINDS[kind] }))}
        />
      ) : (
        kinds[0] === "simulation" && <Quiet>Runs {KINDS.simulation}: nothing here takes labs.</Quiet>
      )}
      {preset && draft.text === null && (
        <SchemeChoice
          kind={kindOf(draft, kinds)}
          usual={preset.schemes}
          chosen={draft.schemes ?? preset.schemes}
          choose={(schemes) => edit({ schemes })}
        />
      )}
      <Group>
        {number("repeats", "Repeats", { min: 1 })}
        {number("seed", "Seed", { min: 0 })}
        {draft.text === null && number("load", "Load, 0 to 1", { min: 0, step: "any" })}
      </Group>
      {draft.text === null && (
        <>
          <FieldChanges
            changes={draft.changes}
            edit={(changes) => edit({ changes })}
            fields={fields}
            wrong={(field) => about(problems, field).length > 0}
          />
          <SweepAxes
            axes={draft.axes}
            edit={(axes) => edit({ axes })}
            fields={fields.map(({ field }) => field)}
          />
        </>
      )}
      {kindOf(draft, kinds) === "lab" && (
        <RecordPackets record={draft.record} edit={(record) => edit({ record })} />
      )}
      <Checkbox
        label="Edit the whole spec as YAML"
        checked={draft.text !== null}
        onChange={(event) => {
          keepText();
          edit({ text: event.target.checked ? editedText[draft.preset] || (preset?.text ?? "") : null });
        }}
      />
      {draft.text !== null && hasChangesForPreset(draft) && (
        <Quiet>
          The YAML begins as the preset has it: schemes, load, fields and sweep that you changed in the form
          are not in it, and are not sent. Uncheck the box to have them again.
        </Quiet>
      )}
      {draft.text !== null && (
        <SpecText text={draft.text} edit={(text) => edit({ text })} problems={problems} />
      )}
      <div role="status">
        {problems.length > 0 ? (
          <List size="sm" className={styles["problems"]} data-testid="problems">
            {problems.map((problem, index) => (
              <List.Item key={index}>
                ✕ {problem.line != null && `line ${problem.line}: `}
                {fieldOf(problem) && (
                  <>
                    <Code>{fieldOf(problem)}</Code>:{" "}
                  </>
                )}
                {problem.message}
              </List.Item>
            ))}
          </List>
        ) : (
          check.data && <Verdict check={check.data} />
        )}
      </div>
      <Group>
        <Button
          variant="filled"
          type="submit"
          disabled={begin.isPending || !mayBegin || engine === undefined}
        >
          {begin.isPending ? "Submitting …" : "Begin"}
        </Button>
      </Group>
    </Stack>
  );
}
