import { hasModes } from "../fabric/modes";
import { useFabric, useFlowHistory, useScheme } from "../api/queries";
import type { FlowHistory } from "../api/schema";
import { Asked } from "../parts/Asked";
import { Panel } from "../parts/Panel";
import { bitRate, byteSize } from "../parts/units";
import { inOrder, stampNames } from "./names";
import { PathDiagram } from "./PathDiagram";
import { PathStrip } from "./PathStrip";
import { added, total } from "./shares";

/** Steps (half seconds) over which "now" is taken, so that the eye can follow. */
const NOW_STEPS = 3;

/** One flow's paths: now, and over its life. */
export function FlowPaths({ id, heading, close }: { id: number; heading: string; close?: () => void }) {
  const story = useFlowHistory(id);
  return (
    <Panel title={heading} {...(close ? { close } : {})}>
      <Asked query={story} what={`flow ${id}`}>
        {(data) => <Story story={data} />}
      </Asked>
    </Panel>
  );
}

function Story({ story }: { story: FlowHistory }) {
  const names = stampNames(useFabric().data);
  const scheme = useScheme().data?.scheme;
  const modal = scheme !== undefined && hasModes(scheme);
  const { flow } = story;
  const stamps = inOrder(
    [...story.paths.map((path) => String(path.stamp)), ...Object.keys(flow.paths)],
    names,
  );
  const recent = added(story.timeline.slice(-NOW_STEPS).map((step) => step.paths));
  const now = total(recent) > 0 ? recent : flow.paths;
  return (
    <div data-flow={flow.id} data-state={flow.state} data-class={flow.traffic_class}>
      <p>
        <strong>
          flow {flow.id}: {flow.source} → {flow.destination}
        </strong>{" "}
        {flow.protocol}, port {flow.destination_port}, {flow.traffic_class};{" "}
        {flow.state === "active" ? bitRate(flow.bits_per_s) : "ended"}; {byteSize(flow.bytes)} in{" "}
        {flow.packets} packets
        {flow.repairs > 0 && `, ${flow.repairs} repairs`}
        {flow.recovered > 0 && `, ▲ ${flow.recovered} recovered`}
        {flow.lost > 0 && `, ▼ ${flow.lost} lost`}
      </p>
      <div className="flow-paths">
        <PathDiagram source={flow.source} destination={flow.destination} paths={story.paths} now={now} />
        <PathStrip story={story} stamps={stamps} names={names} modal={modal} to={flow.last_at} />
      </div>
    </div>
  );
}
