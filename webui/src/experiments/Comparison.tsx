import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "../api/client";
import type { ComparedScheme, ComparisonView, EstimateView } from "../api/schema";
import { SchemeDistribution } from "../fct/SchemeDistribution";
import { DataTable } from "../parts/DataTable";
import { Grid } from "../parts/Grid";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { SchemeMark } from "../parts/SchemeMark";
import { stylesOf } from "../parts/schemes";
import { BarChart } from "./BarChart";
import { comparedBars, labelIn, three } from "./comparing";
import { MOST_FLOWS, useExperiment, useFlowRecords } from "./queries";
import { FirstFlows } from "./RunsSoFar";
import { shortFlowTimes } from "./times";
import type { Experiment, ResultDocument } from "./types";

function words(estimate: EstimateView): string {
  const interval =
    estimate.low === null || estimate.high === null
      ? ""
      : ` (${three(estimate.low)} to ${three(estimate.high)})`;
  return `${three(estimate.mean)}${interval}`;
}

/** Show two experiments side by side: what both have measured for the schemes that both have. */
export function Comparison({ a, b }: { a: Experiment; b: number }) {
  const comparison = useQuery({
    queryKey: ["experiments", a.id, "compare", b],
    queryFn: ({ signal }) => get<ComparisonView>(`/experiments/${a.id}/compare?with=${b}`, signal),
    retry: false,
  });
  const other = useExperiment(b);
  return (
    <Panel title={`Experiment ${a.id} beside ${b}`}>
      <QueryResult query={comparison} subject="comparison">
        {({ schemes }) =>
          schemes.length === 0 ? (
            <Quiet>They have no scheme in common; points of sweeps are compared one by one.</Quiet>
          ) : (
            <QueryResult query={other} subject={`experiment ${b}`}>
              {(second) => <Both a={a} b={second} schemes={schemes} />}
            </QueryResult>
          )
        }
      </QueryResult>
    </Panel>
  );
}

function Both({ a, b, schemes }: { a: Experiment; b: Experiment; schemes: readonly ComparedScheme[] }) {
  const measures = useMemo(() => comparedBars(schemes, [side(a), side(b)]), [schemes, a, b]);
  const styleOf = useMemo(() => stylesOf(side(a).schemes), [a]);
  const limited = schemes.some((scheme) => scheme.cpu_limited.some(Boolean));
  const disturbed = schemes.some((scheme) => scheme.disturbed.some(Boolean));
  return (
    <>
      <Text>
        {[a, b].map(({ id, title, name, simulated, seed }) => (
          <span key={id} style={{ display: "block" }}>
            <strong>{id}</strong>: {title || name}
            {simulated && ", simulated"}, seed {seed}
          </span>
        ))}
      </Text>
      {limited && <Text c="var(--warn)">* The processor limited these runs: no conclusions from them.</Text>}
      {disturbed && (
        <Text c="var(--warn)">
          * A part of the lab ended during these runs: run them again for figures to use.
        </Text>
      )}
      <Grid>
        {measures.map((measure) => (
          <BarChart key={measure.name} measure={measure} />
        ))}
        <BothDistributions a={a} b={b} schemes={schemes} />
      </Grid>
      <DataTable
        label="Measures of both"
        maxHeight={440}
        head={["scheme", "measure", `experiment ${a.id}`, `experiment ${b.id}`, `${b.id} / ${a.id}`]}
        rows={schemes.flatMap((scheme) =>
          scheme.measures.map((measure) => ({
            key: `${scheme.label} ${measure.name}`,
            cells: [
              <>
                <SchemeMark name={scheme.label} style={styleOf(scheme.label)} />
                {[...scheme.cpu_limited, ...scheme.disturbed].some(Boolean) ? " *" : ""}
              </>,
              `${measure.title}, ${measure.unit}`,
              words(measure.a),
              words(measure.b),
              measure.ratio === null ? "–" : three(measure.ratio),
            ],
          })),
        )}
      />
    </>
  );
}

const side = ({ id, summary }: Experiment) => ({
  id,
  schemes: ((summary ?? {}) as ResultDocument).schemes ?? {},
});

/** Draw completion times of short flows in both, of the schemes that both have. */
function BothDistributions({
  a,
  b,
  schemes,
}: {
  a: Experiment;
  b: Experiment;
  schemes: readonly ComparedScheme[];
}) {
  const ofA = useFlowRecords(a.id, a.runs?.length ?? 0);
  const ofB = useFlowRecords(b.id, b.runs?.length ?? 0);
  const curves = useMemo(() => {
    const both = new Set(schemes.map((scheme) => scheme.label));
    const curvesOf = (experiment: Experiment, records: typeof ofA.data, dashed: boolean) =>
      shortFlowTimes(experiment, records ?? [])
        .filter(({ label }) => both.has(label))
        .map((curve) => ({
          ...curve,
          label: labelIn(curve.label, experiment.id),
          style: styleOf(curve.label),
          dashed,
        }));
    const styleOf = stylesOf(side(a).schemes);
    return [...curvesOf(a, ofA.data, false), ...curvesOf(b, ofB.data, true)];
  }, [a, b, schemes, ofA.data, ofB.data]);
  if (curves.length === 0) return null;
  return (
    <div>
      <SchemeDistribution of={curves} />
      <Quiet>Completion times of short flows; dashed: experiment {b.id}.</Quiet>
      {[ofA, ofB].some(({ data }) => (data?.length ?? 0) >= MOST_FLOWS) && <FirstFlows />}
    </div>
  );
}
