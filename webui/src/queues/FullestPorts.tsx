import { TimeChart } from "../charts/TimeChart";
import { useFabric } from "../api/queries";
import { packets } from "../fabric/linkWords";
import { KEPT_S } from "../live/linkHistory";
import { useLive, useStore } from "../live/useLive";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { useHeight } from "../parts/useHeight";
import { fullest } from "./rows";

/** As many as a chart has kinds of lines. */
const SHOWN = 4;

/** Draw the queues that were longest in the last minute. */
export function FullestPorts() {
  const sample = useLive("links", (store) => store.links);
  const history = useStore().linkHistory;
  const fabric = useFabric().data;
  const height = useHeight(200, 560, 360);
  if (!sample) return null;
  const ports = fullest(sample, history, fabric, SHOWN);
  return (
    <Panel title="Fullest ports of the last minute">
      {ports.length === 0 ? (
        <Quiet>No packet has waited.</Quiet>
      ) : (
        <TimeChart
          title="Packets that wait"
          series={ports}
          from={sample.at - KEPT_S}
          to={sample.at}
          atLeast={8}
          format={packets}
          height={height}
        />
      )}
    </Panel>
  );
}
