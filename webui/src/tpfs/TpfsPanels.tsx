import { Spoiler, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import type { LearnerState, LearntTypes } from "../api/schema";
import { useSource } from "../api/source";
import { DataTable } from "../parts/DataTable";
import { Grid } from "../parts/Grid";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { byteSize, duration, percent, timeOfEvent } from "../parts/units";
import { FollowedRun } from "../watch/FollowedRun";
import { WatchSource } from "../watch/WatchSource";
import { SizeChart } from "./SizeChart";
import { ThresholdChart } from "./ThresholdChart";
import { TypeMark } from "./TypeMark";
import { typeName } from "./types";

/**
 * Show types of flows that TPFS learnt on the watched fabric: what distinguishes them, how large their flows are, and
 * at which sizes they are demoted.
 */
export function TpfsPanels() {
  return (
    <WatchSource>
      <FollowedRun />
      <Learnt />
    </WatchSource>
  );
}

function Learnt() {
  const source = useSource();
  const view = useQuery({
    queryKey: ["tpfs", source],
    queryFn: ({ signal }) => get<LearnerState>(`${source}/tpfs`, signal),
    refetchInterval: 2_000,
  });
  return (
    <QueryResult query={view} subject="types of flows">
      {(learner) => (
        <>
          <Panel title="What is learnt here now">
            <Text>
              {learner.learning
                ? `● on: types are computed every ${duration(learner.interval_s ?? 0)}`
                : "○ off: the scheme in force predicts nothing (tpfs and caps-tpfs do)"}
              ; {learner.records.toLocaleString("en-US")} records of finished flows from {learner.hosts} hosts
              {learner.last_at !== null &&
                `; last ${timeOfEvent(learner.last_at, Date.now() / 1000)}, in ${duration(learner.last_s ?? 0)}: ${learner.last_outcome}`}
            </Text>
            {!learner.types && (
              <Quiet>
                No types yet: they need some hundred finished flows of more than one kind. Switch to tpfs, and
                start a workload of several applications (preset tpfs-tenants).
              </Quiet>
            )}
          </Panel>
          {learner.types && <Types learnt={learner.types} />}
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
    <Grid>
      <Panel title="How large flows of each type are">
        <SizeChart learnt={learnt} />
      </Panel>
      <Panel title="Bytes after which a flow goes to the next lower queue">
        <ThresholdChart learnt={learnt} />
        <Quiet>
          A flow begins in queue 0, which goes first; a mark is where it sinks to the queue of that number.
        </Quiet>
      </Panel>
      <Panel title="Types">
        <DataTable
          label="Types"
          head={["type", "flows", "mean", "median", "90 %"]}
          rows={learnt.types.map((type, index) => ({
            key: index,
            cells: [
              <>
                <TypeMark index={index} /> {index}: {typeName(type, learnt.features)}
              </>,
              type.flows,
              byteSize(type.mean_bytes),
              byteSize(type.median_bytes),
              byteSize(type.p90_bytes),
            ],
          }))}
        />
        <Text my={6}>
          By the model the mean slowdown of flows is {percent(learnt.slowdown_ratio)} of that under the
          default thresholds; {learnt.unknown_flows} flows are of no known type.
        </Text>
      </Panel>
      <Panel title="In words, and what else was tried">
        <Spoiler maxHeight={120} showLabel="Show all" hideLabel="Show less">
          <Text component="pre" ff="monospace" m={0} style={{ whiteSpace: "pre-wrap" }}>
            {learnt.explanation}
          </Text>
          <DataTable
            label="Features that were tried"
            head={["features", "types", "spread (less is better)"]}
            rows={learnt.tried.map((combination) => ({
              key: combination.features.join(),
              cells: [
                combination.features.join(", ").replaceAll("_", " "),
                combination.types,
                combination.spread.toFixed(3),
              ],
            }))}
          />
        </Spoiler>
      </Panel>
    </Grid>
  );
}
