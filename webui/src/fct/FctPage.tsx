import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useMemo } from "react";
import { useSource } from "../api/source";
import { useScheme } from "../api/queries";
import { merged } from "../flows/rows";
import { useAllFlows } from "../flows/useAllFlows";
import { DataTable } from "../parts/DataTable";
import { Column, Grid } from "../parts/Grid";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { SchemeMark } from "../parts/SchemeMark";
import { schemeStyle } from "../parts/schemes";
import { bitRate, count, duration } from "../parts/units";
import { useHeight } from "../parts/useHeight";
import { schemeChanges } from "./schemeChanges";
import { SchemeDistribution } from "./SchemeDistribution";
import {
  figures,
  type Group,
  groups,
  LEAST_FOR_P99,
  longGoodput,
  schemeIntervals,
  SIZE_CLASSES,
} from "./statistics";

interface Times {
  flowGroups: Group[];
  long: { flows: number; bitsPerS: number };
  /** Why it is not known whether flows have ended; "": none has. */
  missing: string;
}

/**
 * Return completion times of live flows by scheme and size class, and the goodput of long flows. No flow has a scheme
 * before the controller has said when schemes changed.
 */
function useCompletionTimes(): Times {
  const source = useSource();
  const { query: flows, known, live } = useAllFlows();
  const inForce = useScheme().data;
  const scheme = inForce?.scheme.name ?? null;
  const events = useQuery({
    queryKey: ["events", source, scheme, inForce?.version],
    queryFn: ({ signal }) => schemeChanges(source, signal),
    placeholderData: (before, query) => (query?.queryKey[1] === source ? before : undefined),
  });
  const recent = useDeferredValue(live);
  const calm = useMemo(() => merged(known, recent), [known, recent]);
  const changes = events.data;
  const flowGroups = useMemo(
    () => groups(calm, changes ? schemeIntervals(changes.events, scheme, changes.since) : []),
    [calm, changes, scheme],
  );
  const missing =
    waiting(events, "Asking when the scheme was changed…") ||
    waiting(flows, "Asking for flows that have ended…");
  return { flowGroups, long: longGoodput(calm), missing };
}

/** Return why a query has no data, *asking* while its first answer is awaited; "": it has. */
const waiting = (query: { data: unknown; error: Error | null }, asking: string): string =>
  query.data ? "" : (query.error?.message ?? asking);

/** Show completion times of live traffic, by size class and scheme. */
export function FctPage() {
  const { flowGroups, long, missing } = useCompletionTimes();
  const height = useHeight(270, 620, 480);
  return (
    <Column>
      <Text>
        {goodput(long)}{" "}
        <Text span c="dimmed">
          Times run from a flow's first packet to its last, as agents saw them; flows during which the scheme
          changed are left out. For conclusions run an experiment: the same flows under every scheme.
        </Text>
      </Text>
      {flowGroups.length === 0 && <None why={missing} />}
      <Grid>
        {SIZE_CLASSES.map((sizeClass) => {
          const mine = flowGroups.filter((group) => group.sizeClass === sizeClass);
          return mine.length > 0 && <SizePanel key={sizeClass.name} groups={mine} height={height} />;
        })}
      </Grid>
    </Column>
  );
}

/** Show the size class of which most flows have ended: what fits beside the fabric. */
export function CompletionTimes() {
  const { flowGroups, long, missing } = useCompletionTimes();
  const height = useHeight(150, 320, 780);
  const ended = (name: string): number =>
    flowGroups
      .filter((group) => group.sizeClass.name === name)
      .reduce((sum, group) => sum + group.times.length, 0);
  const [most] = [...SIZE_CLASSES].sort((left, right) => ended(right.name) - ended(left.name));
  const mine = flowGroups.filter((group) => group.sizeClass === most);
  if (mine.length === 0) {
    return (
      <Panel title="Completion times">
        <None why={missing} />
      </Panel>
    );
  }
  return <SizePanel groups={mine} height={height} note={goodput(long)} />;
}

const goodput = (long: { flows: number; bitsPerS: number }): string =>
  long.flows === 0
    ? "No long flow is on its way."
    : `${count(long.flows, "long flow")} on the way: ${bitRate(long.bitsPerS)} together.`;

function None({ why }: { why: string }) {
  return (
    <Quiet>
      {why ||
        "No flow has ended yet. Completion times show here as flows end: begin an experiment, or send something."}
    </Quiet>
  );
}

function SizePanel({ groups, height, note }: { groups: readonly Group[]; height?: number; note?: string }) {
  const size = groups[0]?.sizeClass.name ?? "";
  return (
    <Panel title={`Completion times of flows of ${size}`}>
      <SchemeDistribution
        of={groups.map(({ scheme, times }) => ({ label: scheme, style: schemeStyle(scheme), times }))}
        {...(height ? { height } : {})}
      />
      <DataTable
        label={`Completion times of flows of ${size}`}
        head={["scheme", "flows", "mean", "median", "p99"]}
        rows={groups.map((group) => {
          const { n, mean, p50, p99 } = figures(group.times);
          return {
            key: group.scheme,
            cells: [
              <SchemeMark name={group.scheme} />,
              n,
              duration(mean),
              duration(p50),
              <span title={p99 === null ? `needs ${LEAST_FOR_P99} flows` : undefined}>
                {p99 === null ? "–" : duration(p99)}
              </span>,
            ],
          };
        })}
      />
      {note && <Quiet>{note}</Quiet>}
    </Panel>
  );
}
