import { useMutation, useQueryClient } from "@tanstack/react-query";
import { change } from "../api/client";
import { Link } from "../app/Link";
import { useSearch } from "../app/location";
import { useRole } from "../app/role";
import { Asked } from "../parts/Asked";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { dayTime, duration } from "../parts/units";
import { Comparison } from "./Comparison";
import { ProgressBar } from "./ProgressBar";
import { useExperiment } from "./queries";
import { Results } from "./Results";
import { StateMark } from "./StateMark";
import { type Experiment, OVER } from "./types";

/** One experiment: how far it is, what it found, what another found beside it. */
export function ExperimentView({ id }: { id: number }) {
  const query = useExperiment(id);
  return (
    <Asked query={query} what={`experiment ${id}`}>
      {(experiment) => <Whole experiment={experiment} />}
    </Asked>
  );
}

function Whole({ experiment }: { experiment: Experiment }) {
  const [search] = useSearch();
  const other = Number(search.get("with")) || null;
  const over = OVER.includes(experiment.state);
  const runs = experiment.runs ?? [];
  return (
    <>
      <Panel title={`Experiment ${experiment.id}: ${experiment.title || experiment.name}`}>
        <p>
          <StateMark state={experiment.state} />, begun {dayTime(experiment.created_at)}
          {experiment.finished_at !== null &&
            `, took ${duration(experiment.finished_at - experiment.created_at)}`}
          , seed {experiment.seed}
          {experiment.parent != null && (
            <>
              , point of{" "}
              <Link href={`/experiments/${experiment.parent}`}>experiment {experiment.parent}</Link>{" "}
              {experiment.words}
            </>
          )}
        </p>
        {experiment.error && (
          <Notice title="Why it ended" kind="error">
            {experiment.error}
          </Notice>
        )}
        {!over && <ProgressBar experiment={experiment} />}
        <Actions experiment={experiment} over={over} />
      </Panel>
      {other !== null && <Comparison a={experiment.id} b={other} />}
      {experiment.children && experiment.children.length > 0 && <Points experiment={experiment} />}
      {runs.length > 0 || experiment.summary ? (
        <Results experiment={experiment} />
      ) : (
        over && <Notice title="No run was kept">It ended before its first run was over.</Notice>
      )}
    </>
  );
}

function Actions({ experiment, over }: { experiment: Experiment; over: boolean }) {
  const role = useRole();
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey: ["experiments"] });
  const cancel = useMutation({
    mutationFn: () => change("POST", `/experiments/${experiment.id}/cancel`, {}),
    onSettled: refresh,
  });
  const rerun = useMutation({
    mutationFn: () => change("POST", `/experiments/${experiment.id}/rerun`, {}),
    onSettled: refresh,
  });
  const [, search] = useSearch();
  const engines =
    experiment.kind !== undefined && experiment.kind !== "recorded" && experiment.kind !== "point";
  const error = cancel.error ?? rerun.error;
  return (
    <div className="actions">
      {role === "operate" && engines && !over && (
        <button
          disabled={cancel.isPending || experiment.state === "cancelling"}
          onClick={() => cancel.mutate()}
        >
          Cancel
        </button>
      )}
      {role === "operate" && engines && over && experiment.state !== "finished" && (
        <button disabled={rerun.isPending} onClick={() => rerun.mutate()}>
          Run what is missing
        </button>
      )}
      {over && (
        <label>
          Compare with experiment{" "}
          <input
            type="number"
            min={1}
            className="number"
            onChange={(event) => search({ with: event.target.value || null })}
          />
        </label>
      )}
      {error && <p role="alert">{error.message}</p>}
    </div>
  );
}

function Points({ experiment }: { experiment: Experiment }) {
  return (
    <Panel title="Points of the sweep">
      <ul>
        {experiment.children?.map((point) => (
          <li key={point.id}>
            <Link href={`/experiments/${point.id}`}>{point.words || `experiment ${point.id}`}</Link>{" "}
            <StateMark state={point.state} /> {point.cpu_limited ? "* limited by the processor" : ""}{" "}
            {point.error}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
