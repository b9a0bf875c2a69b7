import { Link } from "../app/Link";
import { Panel } from "../parts/Panel";
import { SchemeMark } from "../parts/SchemeMark";
import { StateMark } from "./StateMark";
import type { ChildView } from "../api/schema";
import type { Experiment, SchemeResult, SweepDocument } from "./types";
import { digits } from "../parts/units";

/** Points of a sweep: each its state and, once the sweep is over, its schemes' figures side by side. */
export function SweepPoints({ experiment }: { experiment: Experiment }) {
  const byPoint = new Map(
    ((experiment.summary ?? {}) as SweepDocument).points?.map((point) => [
      point.experiment,
      point.schemes ?? {},
    ]),
  );
  const schemes = [
    ...new Set([...byPoint.values()].flatMap((schemesOfPoint) => Object.keys(schemesOfPoint))),
  ];
  return (
    <Panel title="Points of the sweep">
      <div className="scroll" tabIndex={0} role="region" aria-label="Table of the points">
        <table className="numbers">
          <thead>
            <tr>
              <th scope="col">point</th>
              <th scope="col">state</th>
              {schemes.map((label) => (
                <th key={label} scope="col">
                  <SchemeMark name={label} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {experiment.children?.map((point) => (
              <tr key={point.id}>
                <th scope="row">
                  <Link href={`/experiments/${point.id}`}>{point.words || `experiment ${point.id}`}</Link>
                  {point.cpu_limited ? " *" : ""}
                </th>
                <td>
                  <StateMark state={point.state} />
                </td>
                {schemes.map((label) => (
                  <Figures key={label} of={byPoint.get(point.id)?.[label]} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {schemes.length > 0 && (
        <p className="quiet">
          Mean completion time of short flows with its 95 % interval; goodput of all long flows together.
        </p>
      )}
      {experiment.children?.some((point) => point.cpu_limited) && (
        <p className="state warn">* The processor limited these runs: no conclusions from them.</p>
      )}
      <Errors points={experiment.children ?? []} />
    </Panel>
  );
}

function Figures({ of: result }: { of: SchemeResult | undefined }) {
  const { short, long } = result ?? {};
  const interval = short?.afct_ci_ms;
  return (
    <td>
      {short ? `${digits(short.afct_ms)} ms` : "–"}
      {interval && <span className="quiet"> {interval.map(digits).join(" to ")}</span>}
      {long?.goodput_mbps != null && <div>{digits(long.goodput_mbps)} Mbit/s</div>}
    </td>
  );
}

/** Why points ended that did not finish, each reason once. */
function Errors({ points }: { points: readonly ChildView[] }) {
  const reasons = [...new Set(points.map((one) => one.error).filter(Boolean))];
  if (reasons.length === 0) return null;
  return (
    <ul className="problems">
      {reasons.map((reason) => (
        <li key={reason}>
          ✕ {reason}{" "}
          <span className="quiet">
            (
            {points
              .filter((point) => point.error === reason)
              .map((point) => point.words)
              .join("; ")}
            )
          </span>
        </li>
      ))}
    </ul>
  );
}
