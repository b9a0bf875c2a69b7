import { useMemo } from "react";
import { distribution } from "../fct/statistics";
import { DistributionChart } from "../fct/DistributionChart";
import { Panel } from "../parts/Panel";
import { SchemeMark } from "../parts/SchemeMark";
import { digits, percent } from "../parts/units";
import { BarChart } from "./BarChart";
import { measures } from "./bars";
import { Claims } from "./Claims";
import { Downloads } from "./Downloads";
import { useFlowRecords } from "./queries";
import type { Experiment, ResultDocument } from "./types";

/** What an experiment found: bars with intervals, distributions, claims, and files to take along. */
export function Results({ experiment }: { experiment: Experiment }) {
  const document = (experiment.summary ?? {}) as ResultDocument;
  const records = useFlowRecords(experiment.id, (experiment.runs?.length ?? 0) > 0);
  const curves = useMemo(() => {
    const labels = new Map(experiment.runs?.map((run) => [run.id, run.label]));
    const times = new Map<string, number[]>();
    for (const flow of records.data ?? []) {
      const label = labels.get(flow.run_id);
      if (label === undefined || flow.traffic_class !== "short" || flow.fct_s === null) continue;
      const known = times.get(label);
      if (known) known.push(flow.fct_s);
      else times.set(label, [flow.fct_s]);
    }
    return [...times].map(([scheme, ofScheme]) => ({
      scheme,
      points: distribution(ofScheme.sort((left, right) => left - right)),
    }));
  }, [experiment.runs, records.data]);
  const limited = document.cpu_limited === true;
  return (
    <>
      {document.schemes && (
        <div className="fct-grid">
          <Panel title="Schemes side by side">
            {limited && (
              <p className="state warn">* The processor limited these runs: no conclusions from them.</p>
            )}
            {measures(document).map((measure) => (
              <BarChart key={measure.name} measure={measure} />
            ))}
          </Panel>
          {curves.length > 0 && (
            <Panel title="Completion times of short flows">
              <DistributionChart title="Share of flows that are done" curves={curves} />
              <p>
                {curves.map((curve) => (
                  <span key={curve.scheme} className="curve-key">
                    <SchemeMark name={curve.scheme} />
                  </span>
                ))}
              </p>
            </Panel>
          )}
        </div>
      )}
      {document.schemes && (
        <Panel title="Figures of each scheme">
          <SchemeTable document={document} />
          <Claims claims={document.claims ?? []} />
        </Panel>
      )}
      <Downloads experiment={experiment} />
    </>
  );
}

function SchemeTable({ document }: { document: ResultDocument }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Table of the schemes">
      <table className="numbers">
        <thead>
          <tr>
            <th scope="col">scheme</th>
            <th scope="col">flows</th>
            <th scope="col">failed</th>
            <th scope="col">median</th>
            <th scope="col">resent</th>
            <th scope="col">recovered</th>
            <th scope="col">overhead</th>
            <th scope="col">paths: short</th>
            <th scope="col">long</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(document.schemes ?? {}).map(([label, scheme]) => (
            <tr key={label}>
              <th scope="row">
                <SchemeMark name={label} />
                {scheme.cpu_limited ? " *" : ""}
              </th>
              <td>{scheme.short?.n ?? "–"}</td>
              <td>{scheme.short?.failed ?? "–"}</td>
              <td>{scheme.short ? `${digits(scheme.short.p50_ms)} ms` : "–"}</td>
              <td>{scheme.retransmissions}</td>
              <td>{scheme.recovered_packets}</td>
              <td>{percent(scheme.overhead)}</td>
              <td>{scheme.paths?.short?.paths_per_flow.toFixed(1) ?? "–"}</td>
              <td>{scheme.paths?.long?.paths_per_flow.toFixed(1) ?? "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
