import { useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import { QueryResult } from "../parts/QueryResult";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { byteSize, clockTime, duration, percent } from "../parts/units";
import { SizeChart } from "./SizeChart";
import { ThresholdChart } from "./ThresholdChart";
import { TypeMark } from "./TypeMark";
import type { LearntTypes, LearnerState } from "../api/schema";
import { typeName } from "./types";

/** Types of flows: what distinguishes them, how large their flows are, and where they sink. */
export function TpfsPage() {
  const view = useQuery({
    queryKey: ["tpfs"],
    queryFn: ({ signal }) => get<LearnerState>("/tpfs", signal),
    refetchInterval: 2_000,
  });
  return (
    <QueryResult query={view} what="types of flows">
      {(learner) => (
        <>
          <Panel title="Learning">
            <p>
              {learner.learning
                ? `● on: types are computed every ${duration(learner.interval_s ?? 0)}`
                : "○ off: the scheme in force predicts nothing (tpfs and caps-tpfs do)"}
              ; {learner.records.toLocaleString("en-US")} records of finished flows from {learner.hosts} hosts
              {learner.last_at !== null &&
                `; last ${clockTime(learner.last_at)}, in ${duration(learner.last_s ?? 0)}: ${learner.last_outcome}`}
            </p>
          </Panel>
          {learner.types ? (
            <Types learnt={learner.types} />
          ) : (
            <Notice title="No types yet">
              They need some hundred finished flows of more than one kind: switch to tpfs, and start a
              workload of several applications (preset tpfs-gain or alike).
            </Notice>
          )}
        </>
      )}
    </QueryResult>
  );
}

function Types({ learnt }: { learnt: LearntTypes }) {
  if (learnt.types.length === 0) {
    return (
      <Notice title="No feature distinguishes flows">
        All flows have the default thresholds, as with PIAS.
      </Notice>
    );
  }
  return (
    <>
      <div className="fct-grid">
        <Panel title="How large flows of each type are">
          <SizeChart learnt={learnt} />
          <p>
            {learnt.types.map((type, index) => (
              <span key={index} className="curve-key">
                <TypeMark index={index} /> type {index}: {typeName(type, learnt.features)}
              </span>
            ))}
          </p>
        </Panel>
        <Panel title="After how many bytes they sink a queue">
          <ThresholdChart learnt={learnt} />
          <p className="quiet">
            A flow begins in queue 0, which goes first; a mark is where it sinks to the queue of that number.
          </p>
        </Panel>
      </div>
      <Panel title="Types">
        <table className="numbers">
          <thead>
            <tr>
              <th scope="col">type</th>
              <th scope="col">flows</th>
              <th scope="col">mean</th>
              <th scope="col">median</th>
              <th scope="col">90 %</th>
            </tr>
          </thead>
          <tbody>
            {learnt.types.map((type, index) => (
              <tr key={index}>
                <th scope="row">
                  <TypeMark index={index} /> {index}: {typeName(type, learnt.features)}
                </th>
                <td>{type.flows}</td>
                <td>{byteSize(type.mean_bytes)}</td>
                <td>{byteSize(type.median_bytes)}</td>
                <td>{byteSize(type.p90_bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p>
          By the model the mean slowdown of flows is {percent(learnt.slowdown_ratio)} of that under the
          default thresholds; {learnt.unknown_flows} flows are of no known type.
        </p>
        <details>
          <summary>In words, and what else was tried</summary>
          <pre>{learnt.explanation}</pre>
          <table className="numbers">
            <thead>
              <tr>
                <th scope="col">features</th>
                <th scope="col">types</th>
                <th scope="col">spread (less is better)</th>
              </tr>
            </thead>
            <tbody>
              {learnt.tried.map((combination) => (
                <tr key={combination.features.join()}>
                  <th scope="row">{combination.features.join(", ").replaceAll("_", " ")}</th>
                  <td>{combination.types}</td>
                  <td>{combination.spread.toFixed(3)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      </Panel>
    </>
  );
}
