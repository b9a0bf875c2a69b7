import { Text } from "@mantine/core";
import { SchemeDistribution } from "../fct/SchemeDistribution";
import { DataTable } from "../parts/DataTable";
import { Grid } from "../parts/Grid";
import { Panel } from "../parts/Panel";
import { SchemeMark } from "../parts/SchemeMark";
import { stylesOf } from "../parts/schemes";
import { digits, percent } from "../parts/units";
import { BarChart } from "./BarChart";
import { measures } from "./bars";
import { Claims } from "./Claims";
import { Downloads } from "./Downloads";
import { FirstFlows, RunsSoFar, useShortFlowTimes } from "./RunsSoFar";
import { type Experiment, OVER, type ResultDocument, type SweepDocument } from "./types";

/** Show the results of an experiment: bars with intervals, distributions, claims, and files to download. */
export function Results({ experiment }: { experiment: Experiment }) {
  const document = (experiment.summary ?? {}) as ResultDocument;
  const { points } = (experiment.summary ?? {}) as SweepDocument;
  const { times, isPart } = useShortFlowTimes(experiment);
  const limited = document.cpu_limited === true;
  const going = !document.schemes && !OVER.includes(experiment.state);
  return (
    <>
      {document.schemes && (
        <Grid>
          <Panel title="Schemes side by side">
            {limited && (
              <Text c="var(--warn)">* The processor limited these runs: no conclusions from them.</Text>
            )}
            {document.disturbed === true && (
              <Text c="var(--warn)">
                * A part of the lab ended during these runs: run them again for figures to use.
              </Text>
            )}
            {measures(document).map((measure) => (
              <BarChart key={measure.name} measure={measure} />
            ))}
          </Panel>
          {times.length > 0 && (
            <Panel title="Completion times of short flows">
              <SchemeDistribution of={times} />
              {isPart && <FirstFlows />}
            </Panel>
          )}
        </Grid>
      )}
      {going && <RunsSoFar experiment={experiment} />}
      {document.schemes && (
        <Panel title="Figures of each scheme">
          <SchemeTable document={document} />
        </Panel>
      )}
      <Claims claims={document.claims ?? []} points={points?.map(({ words = "" }) => words) ?? []} />
      <Downloads experiment={experiment} />
    </>
  );
}

/** Return *value* in *words*: results that other programs have stored may lack any figure. */
const orNone = (value: number | null | undefined, words: (value: number) => string): string =>
  typeof value === "number" ? words(value) : "–";

export function SchemeTable({ document }: { document: ResultDocument }) {
  const styleOf = stylesOf(document.schemes ?? {});
  return (
    <DataTable
      label="Table of the schemes"
      head={[
        "scheme",
        "flows",
        "failed",
        "median",
        "packets resent",
        "packets recovered",
        "overhead",
        "paths: short",
        "paths: long",
      ]}
      rows={Object.entries(document.schemes ?? {}).map(([label, scheme]) => ({
        key: label,
        cells: [
          <>
            <SchemeMark name={label} style={styleOf(label)} />
            {scheme.cpu_limited || scheme.disturbed ? " *" : ""}
          </>,
          scheme.short?.n ?? "–",
          scheme.short?.failed ?? "–",
          orNone(scheme.short?.p50_ms, (value) => `${digits(value)} ms`),
          scheme.retransmissions ?? "–",
          scheme.recovered_packets ?? "–",
          orNone(scheme.overhead, percent),
          scheme.paths?.short?.paths_per_flow?.toFixed(1) ?? "–",
          scheme.paths?.long?.paths_per_flow?.toFixed(1) ?? "–",
        ],
      }))}
    />
  );
}
