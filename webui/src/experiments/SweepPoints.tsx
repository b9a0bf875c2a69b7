import { List, Text } from "@mantine/core";
import { Link } from "../app/Link";
import { DataTable } from "../parts/DataTable";
import { Panel } from "../parts/Panel";
import { SchemeMark } from "../parts/SchemeMark";
import styles from "./experiments.module.css";
import { StateMark } from "./StateMark";
import { labelsOf } from "./sweep";
import type { ChildView } from "../api/schema";
import type { Experiment, SchemeResult, SweepDocument } from "./types";
import { Quiet } from "../parts/Quiet";
import { stylesOf } from "../parts/schemes";
import { digits } from "../parts/units";

/** Show the points of a sweep: each its state and, once the sweep has ended, its schemes' figures side by side. */
export function SweepPoints({ experiment }: { experiment: Experiment }) {
  const points = ((experiment.summary ?? {}) as SweepDocument).points ?? [];
  const byPoint = new Map(points.map((point) => [point.experiment, point.schemes ?? {}]));
  const disturbed = new Set(points.filter((point) => point.disturbed).map((point) => point.experiment));
  const labels = labelsOf(points);
  const styleOf = stylesOf(labels);
  const schemes = Object.keys(labels);
  return (
    <Panel title="Points of the sweep">
      <DataTable
        label="Table of the points"
        maxHeight={480}
        head={[
          "point",
          "state",
          ...schemes.map((label) => <SchemeMark key={label} name={label} style={styleOf(label)} />),
        ]}
        rows={(experiment.children ?? []).map((point) => ({
          key: point.id,
          cells: [
            <>
              <Link href={`/compare/${point.id}`}>{point.words || `experiment ${point.id}`}</Link>
              {point.cpu_limited || disturbed.has(point.id) ? " *" : ""}
            </>,
            <StateMark state={point.state} />,
            ...schemes.map((label) => <Figures key={label} of={byPoint.get(point.id)?.[label]} />),
          ],
        }))}
      />
      {schemes.length > 0 && (
        <Quiet>
          Mean completion time of short flows with its 95 % interval; goodput of all long flows together.
        </Quiet>
      )}
      {experiment.children?.some((point) => point.cpu_limited) && (
        <Text c="var(--warn)">* The processor limited these runs: no conclusions from them.</Text>
      )}
      {disturbed.size > 0 && (
        <Text c="var(--warn)">
          * A part of the lab ended during these runs: run them again for figures to use.
        </Text>
      )}
      <Errors points={experiment.children ?? []} />
    </Panel>
  );
}

function Figures({ of: result }: { of: SchemeResult | undefined }) {
  const { short, long } = result ?? {};
  const interval = short?.afct_ci_ms;
  return (
    <>
      {short ? `${digits(short.afct_ms)} ms` : "–"}
      {interval && (
        <Text span c="dimmed">
          {" "}
          {interval.map(digits).join(" to ")}
        </Text>
      )}
      {long?.goodput_mbps != null && <div>{digits(long.goodput_mbps)} Mbit/s</div>}
    </>
  );
}

/** Show why points failed, each reason once. */
function Errors({ points }: { points: readonly ChildView[] }) {
  const reasons = [...new Set(points.map((point) => point.error).filter(Boolean))];
  if (reasons.length === 0) return null;
  return (
    <List size="sm" className={styles["problems"]}>
      {reasons.map((reason) => (
        <List.Item key={reason}>
          ✕ {reason}{" "}
          <Text span c="dimmed">
            (
            {points
              .filter((point) => point.error === reason)
              .map((point) => point.words)
              .join("; ")}
            )
          </Text>
        </List.Item>
      ))}
    </List>
  );
}
