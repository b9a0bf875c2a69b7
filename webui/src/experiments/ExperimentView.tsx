import { Button, Code, Group, NativeSelect, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useState } from "react";
import { change } from "../api/client";
import { askAgain } from "../api/known";
import { useRun } from "../api/queries";
import { LiveFabric } from "../watch/WatchPage";
import { WatchSource } from "../watch/WatchSource";
import { Link } from "../app/Link";
import { useSearch } from "../app/location";
import { useRole } from "../app/role";
import { newestError } from "../control/useFaultChanges";
import { focusHeading } from "../parts/focus";
import { Column } from "../parts/Grid";
import { QueryResult } from "../parts/QueryResult";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { dayTime, duration } from "../parts/units";
import { Comparison } from "./Comparison";
import { OLDER, othersThan } from "./comparing";
import { Notices } from "./Notices";
import { PlayAgain } from "./PlayAgain";
import { ProgressBar } from "./ProgressBar";
import { useExperiment, useExperiments } from "./queries";
import { Results } from "./Results";
import { StateMark } from "./StateMark";
import { doubts, sweepParts } from "./sweep";
import { SweepCharts } from "./SweepCharts";
import { SweepPoints } from "./SweepPoints";
import { ranS } from "./times";
import { type Experiment, OVER, type SweepDocument } from "./types";

const SimulatedRun = lazy(async () => ({ default: (await import("../watch/SimulatedRun")).SimulatedRun }));

/** Show an experiment: its progress, its results, and those of another experiment beside them. */
export function ExperimentView({ id }: { id: number }) {
  const query = useExperiment(id);
  return (
    <QueryResult query={query} subject={`experiment ${id}`}>
      {(experiment) => <Whole experiment={experiment} />}
    </QueryResult>
  );
}

function Whole({ experiment }: { experiment: Experiment }) {
  const [search] = useSearch();
  const other = Number(search.get("with")) || null;
  const over = OVER.includes(experiment.state);
  const runs = experiment.runs ?? [];
  const sweep = experiment.summary as SweepDocument | null;
  const parts = useMemo(() => sweepParts(sweep ?? {}), [sweep]);
  return (
    <Column>
      <Panel title={`Experiment ${experiment.id}: ${experiment.title || experiment.name}`}>
        <Text>
          <StateMark state={experiment.state} />
          {experiment.simulated && <strong>, simulated</strong>}, submitted {dayTime(experiment.created_at)}
          {ran(experiment)}, seed {experiment.seed}
          {experiment.parent != null && (
            <>
              , point of <Link href={`/compare/${experiment.parent}`}>experiment {experiment.parent}</Link>{" "}
              {experiment.words}
            </>
          )}
        </Text>
        {experiment.error && (
          <Notice title="Why it ended" kind="error">
            {experiment.error}
          </Notice>
        )}
        {!over && <ProgressBar experiment={experiment} />}
        <Actions experiment={experiment} over={over} />
        <PlayAgain experiment={experiment} />
      </Panel>
      {!over && !experiment.simulated && <LiveRun experiment={experiment.id} />}
      {experiment.simulated && experiment.state === "running" && (
        <Suspense>
          <SimulatedRun experiment={experiment.id} />
        </Suspense>
      )}
      {other !== null && <Comparison a={experiment} b={other} />}
      <Notices summary={experiment.summary} />
      <SweepCharts parts={parts} doubtful={doubts(sweep ?? {})} />
      {experiment.children && experiment.children.length > 0 && <SweepPoints experiment={experiment} />}
      {runs.length > 0 || experiment.summary ? (
        <Results experiment={experiment} />
      ) : (
        over && <Notice title="No run was kept">It ended before its first run was over.</Notice>
      )}
    </Column>
  );
}

/** Show the fabric of the run in progress, while it belongs to this experiment. */
function LiveRun({ experiment }: { experiment: number }) {
  const run = useRun();
  if (run.experiment !== experiment && run.parent !== experiment) return null;
  return (
    <WatchSource>
      <LiveFabric />
    </WatchSource>
  );
}

/** Return how long a finished experiment ran, without its time in the queue; an empty text before. */
function ran(experiment: Experiment): string {
  const seconds = ranS(experiment);
  return seconds === null ? "" : `, ran ${duration(seconds)}`;
}

function Actions({ experiment, over }: { experiment: Experiment; over: boolean }) {
  const role = useRole();
  const queries = useQueryClient();
  const refresh = () => askAgain(queries, { queryKey: ["experiments"] });
  const cancel = useMutation({
    mutationFn: () => change("POST", `/experiments/${experiment.id}/cancel`, {}),
    onSettled: refresh,
  });
  const rerun = useMutation({
    mutationFn: () => change("POST", `/experiments/${experiment.id}/rerun`, {}),
    onSettled: refresh,
  });
  const engines =
    experiment.kind !== undefined && experiment.kind !== "recorded" && experiment.kind !== "point";
  const error = newestError(cancel, rerun);
  return (
    <Group gap="xs" mt="xs" align="end">
      {role === "operate" && engines && !over && (
        <Button
          disabled={cancel.isPending || experiment.state === "cancelling"}
          onClick={(event) => {
            focusHeading(event.currentTarget);
            cancel.mutate();
          }}
        >
          Cancel
        </Button>
      )}
      {role === "operate" && engines && over && experiment.state !== "finished" && (
        <Button
          disabled={rerun.isPending}
          onClick={(event) => {
            focusHeading(event.currentTarget);
            rerun.mutate();
          }}
        >
          Run what is missing
        </Button>
      )}
      {over && <CompareWith experiment={experiment} />}
      <CopyAddress />
      {role !== "operate" && engines && !over && (
        <Quiet>Your token is for reading only; api-token may cancel it.</Quiet>
      )}
      {error && (
        <Text role="alert" c="error">
          {error.message}
        </Text>
      )}
    </Group>
  );
}

/** Choose another experiment to compare with this one; the address holds the choice. */
function CompareWith({ experiment }: { experiment: Experiment }) {
  const [search, change] = useSearch();
  const list = useExperiments();
  const chosen = search.get("with") ?? "";
  const listed = (list.data?.pages ?? []).flatMap((page) => page.experiments);
  const choices = othersThan(experiment.id, listed, chosen, list.hasNextPage);
  if (choices.length === 0) return null;
  return (
    <NativeSelect
      label="Compare with"
      value={chosen}
      onChange={(event) => {
        if (event.target.value === OLDER) void list.fetchNextPage();
        else change({ with: event.target.value || null });
      }}
      data={[{ value: "", label: "none" }, ...choices]}
    />
  );
}

/** Copy the address, which shows the same to all who may read here. */
function CopyAddress() {
  const [copied, setCopied] = useState<"no" | "yes" | "refused">("no");
  const copy = (): void => {
    // Browsers have a clipboard for pages of this machine, and for those that came encrypted.
    const done = navigator.clipboard?.writeText(location.href) ?? Promise.reject(new Error("no clipboard"));
    done.then(
      () => setCopied("yes"),
      () => setCopied("refused"),
    );
  };
  return (
    <>
      <Button onClick={copy}>Copy the link</Button>
      <Text span role="status">
        {copied === "yes" && "✓ copied"}
        {copied === "refused" && <Code>{location.href}</Code>}
      </Text>
    </>
  );
}
