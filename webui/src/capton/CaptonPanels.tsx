import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { get } from "../api/client";
import { useHas } from "../api/queries";
import type { CaptonView } from "../api/schema";
import { useSource } from "../api/source";
import { DataTable } from "../parts/DataTable";
import { Gauge } from "../parts/Gauge";
import { Grid } from "../parts/Grid";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { bitRate, byteSize, count, duration, percent } from "../parts/units";
import { FollowedRun } from "../watch/FollowedRun";
import { WatchSource } from "../watch/WatchSource";
import { Gantt } from "./Gantt";
import { type Row, withView } from "./grantRows";

const EVERY_S = 1;

/** Show the central scheduler of the watched fabric: who may send, at what rate, and what that leaves of the links. */
export function CaptonPanels() {
  return (
    <WatchSource>
      <FollowedRun />
      <Scheduler />
    </WatchSource>
  );
}

function Scheduler() {
  const source = useSource();
  const has = useHas(`${source}/capton`);
  const view = useQuery({
    queryKey: ["capton", source],
    queryFn: ({ signal }) => get<CaptonView>(`${source}/capton`, signal),
    enabled: has === true,
    refetchInterval: EVERY_S * 1000,
  });
  const [rows, setRows] = useState<Row[]>([]);
  const { data, dataUpdatedAt } = view;
  useEffect(() => {
    if (data) setRows((known) => withView(known, data, dataUpdatedAt / 1000, EVERY_S));
  }, [data, dataUpdatedAt]);
  if (has === false) return <Idle />;
  return (
    <QueryResult query={view} subject="scheduler">
      {(capton) =>
        !capton.enabled ? (
          <Idle />
        ) : (
          <Grid>
            <Panel title="Grants now">
              <Text>
                {count(capton.totals.granted_flows, "flow")} may send, {bitRate(capton.totals.granted_bps)}{" "}
                together; {capton.totals.waiting_flows} wait; {byteSize(capton.totals.remaining_bytes)} remain
                {capton.latency.median_us !== null &&
                  capton.latency.count > 0 &&
                  `; from request to decision ${duration(capton.latency.median_us / 1e6)} in the median`}
              </Text>
              <Gantt rows={rows} now={dataUpdatedAt / 1000} />
            </Panel>
            <Panel title="Shares of links">
              <DataTable
                label="Links with their grants"
                live
                maxHeight={420}
                head={["link", "granted", "of", "share"]}
                rows={[...capton.links]
                  .sort((left, right) => right.utilisation - left.utilisation)
                  .map((link) => ({
                    key: link.name,
                    cells: [
                      link.name,
                      bitRate(link.granted_bps),
                      bitRate(link.capacity_bps),
                      <>
                        <Gauge share={link.utilisation} /> {percent(link.utilisation)}
                      </>,
                    ],
                  }))}
              />
            </Panel>
          </Grid>
        )
      }
    </QueryResult>
  );
}

function Idle() {
  return (
    <Notice title="No scheduler is at work">
      Under the scheme in force hosts send without grants. Under capton large flows request one first: switch
      to it in Operate, and their grants show here.
    </Notice>
  );
}
