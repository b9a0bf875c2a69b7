import { useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import type { ComparisonView, EstimateView } from "../api/schema";
import { DataTable } from "../parts/DataTable";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
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
          <DataTable
            label="Measures of both"
            maxHeight={440}
            head={["scheme", "measure", `experiment ${a}`, `experiment ${b}`, "ratio"]}
            rows={schemes.flatMap((scheme) =>
              scheme.measures.map((measure) => ({
                key: `${scheme.label} ${measure.name}`,
                cells: [
                  <>
                    <SchemeMark name={scheme.label} />
                    {scheme.cpu_limited.some(Boolean) ? " *" : ""}
                  </>,
                  measure.name,
                  words(measure.a, measure.unit),
                  words(measure.b, measure.unit),
                  measure.ratio === null ? "–" : measure.ratio.toFixed(2),
                ],
              })),
            )}
          />
        )}
      </QueryResult>
    </Panel>
  );
}
