import { Text } from "@mantine/core";
import { hasModes } from "../fabric/modes";
import { isRefusal, useFabric, useFlowDetail, useScheme } from "../api/queries";
import type { FlowDetail } from "../api/schema";
import { Notice } from "../parts/Notice";
import { QueryResult } from "../parts/QueryResult";
import { Panel } from "../parts/Panel";
import { bitRate, byteSize } from "../parts/units";
import { inOrder, stampNames } from "./names";
import { PathDiagram } from "./PathDiagram";
import { PathStrip } from "./PathStrip";
import { added, total } from "./shares";
import styles from "./paths.module.css";

/** Steps (half seconds) over which "now" is taken, so that the eye can follow. */
const NOW_STEPS = 3;

/** Show a flow's paths: now, and over its life. */
export function FlowPaths({ id, heading, close }: { id: number; heading: string; close?: () => void }) {
  const detail = useFlowDetail(id);
  return (
    <Panel title={heading} {...(close ? { close } : {})}>
      {detail.error !== null && isRefusal(detail.error) ? (
        // What is known of it may be another controller's, of before a restart.
        <Notice title={`No flow ${id}`} kind="error">
          {detail.error.message}
        </Notice>
      ) : (
        <QueryResult query={detail} subject={`flow ${id}`}>
          {(data) => <Detail detail={data} />}
        </QueryResult>
      )}
    </Panel>
  );
}

function Detail({ detail }: { detail: FlowDetail }) {
  const names = stampNames(useFabric().data);
  const scheme = useScheme().data?.scheme;
  const modal = scheme !== undefined && hasModes(scheme);
  const { flow } = detail;
  const stamps = inOrder(
    [...detail.paths.map((path) => String(path.stamp)), ...Object.keys(flow.paths)],
    names,
  );
  const recent = added(detail.timeline.slice(-NOW_STEPS).map((step) => step.paths));
  const now = total(recent) > 0 ? recent : flow.paths;
  return (
    <div data-flow={flow.id} data-state={flow.state} data-class={flow.traffic_class}>
      <Text mb={6}>
        <strong>
          flow {flow.id}: {flow.source} → {flow.destination}
        </strong>{" "}
        {flow.protocol}, port {flow.destination_port}, {flow.traffic_class};{" "}
        {flow.state === "active" ? bitRate(flow.bits_per_s) : "ended"}; {byteSize(flow.bytes)} in{" "}
        {flow.packets} packets
        {flow.repairs > 0 && `, ${flow.repairs} repairs`}
        {flow.recovered > 0 && `, ▲ ${flow.recovered} recovered`}
        {flow.lost > 0 && `, ▼ ${flow.lost} lost`}
      </Text>
      <div className={styles["flow"]}>
        <PathDiagram source={flow.source} destination={flow.destination} paths={detail.paths} now={now} />
        <PathStrip detail={detail} stamps={stamps} names={names} modal={modal} to={flow.last_at} />
      </div>
    </div>
  );
}
