import { useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import type { ComparisonView, EstimateView } from "../api/schema";
import { QueryResult } from "../parts/QueryResult";
import { Panel } from "../parts/Panel";
import { SchemeMark } from "../parts/SchemeMark";
import { digits } from "../parts/units";

/** Shares may be small. */
const three = (value: number): string =>
  value !== 0 && Math.abs(value) < 0.1 ? value.toPrecision(2) : digits(value);

function words(estimate: EstimateView, unit: string): string {
  const interval =
    estimate.low === null || estimate.high === null
      ? ""
      : ` (${three(estimate.low)} to ${three(estimate.high)})`;
  return `${three(estimate.mean)}${unit ? ` ${unit}` : ""}${interval}`;
}

/** Two experiments side by side: what both have measured for the schemes that both have. */
export function Comparison({ a, b }: { a: number; b: number }) {
  const query = useQuery({
    queryKey: ["experiments", a, "compare", b],
    queryFn: ({ signal }) => get<ComparisonView>(`/experiments/${a}/compare?with=${b}`, signal),
    retry: false,
  });
  return (
    <Panel title={`Experiment ${a} beside ${b}`}>
      <QueryResult query={query} what="comparison">
        {({ schemes }) => (
          <div className="scroll" tabIndex={0} role="region" aria-label="Measures of both">
            <table className="numbers">
              <thead>
                <tr>
                  <th scope="col">scheme</th>
                  <th scope="col">measure</th>
                  <th scope="col">experiment {a}</th>
                  <th scope="col">experiment {b}</th>
                  <th scope="col">ratio</th>
                </tr>
              </thead>
              <tbody>
                {schemes.flatMap((scheme) =>
                  scheme.measures.map((measure) => (
                    <tr key={`${scheme.label} ${measure.name}`}>
                      <th scope="row">
                        <SchemeMark name={scheme.label} />
                        {scheme.cpu_limited.some(Boolean) ? " *" : ""}
                      </th>
                      <td>{measure.name}</td>
                      <td>{words(measure.a, measure.unit)}</td>
                      <td>{words(measure.b, measure.unit)}</td>
                      <td>{measure.ratio === null ? "–" : measure.ratio.toFixed(2)}</td>
                    </tr>
                  )),
                )}
              </tbody>
            </table>
          </div>
        )}
      </QueryResult>
    </Panel>
  );
}
