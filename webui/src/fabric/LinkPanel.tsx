import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useFabric } from "../api/queries";
import type { FabricView, LoadView } from "../api/schema";
import { TimeChart } from "../charts/TimeChart";
import { LinkControls } from "../control/LinkControls";
import { linkEnds } from "./layout";
import { NOW, packetRate, packets } from "./linkWords";
import { KEPT_S } from "../live/linkHistory";
import { useLive, useStore } from "../live/useLive";
import { DataTable } from "../parts/DataTable";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { bitRate } from "../parts/units";

/** Show a link of the fabric that is watched, and what can be done to it. */
export function LinkPanel({ name, close }: { name: string; close: () => void }) {
  const fabric = useFabric().data;
  return (
    <LinkLoads name={name} close={close} fabric={fabric}>
      {(up, rateMbps) => <LinkControls key={name} name={name} up={up} rateMbps={rateMbps} />}
    </LinkLoads>
  );
}

interface LoadsProps {
  name: string;
  close: () => void;
  fabric: FabricView | undefined;
  /** Charts have a simulated run's time, from the first sample that is kept on. */
  ofRun?: boolean;
  /** What else there is to show of a link, up or down, with its rate. */
  children?: (up: boolean, rateMbps: number | null) => ReactNode;
}

/** Show a link over the last minute: rate, queue and drops of each direction. */
export function LinkLoads({ name, close, fabric, ofRun = false, children }: LoadsProps) {
  const sample = useLive("links", (store) => store.links);
  const points = useStore().linkHistory.of(name);
  const [first, last] = [points.at(0), points.at(-1)];
  const [a, b] = linkEnds(name, fabric);
  if (!sample || !first || !last) {
    return (
      <Panel title={`Link ${name}`} close={close}>
        <Quiet>There is no link of this name, or no sample has come yet.</Quiet>
      </Panel>
    );
  }
  const rate = last.rate_kbps === null ? null : last.rate_kbps * 1000;
  const chart = (
    title: string,
    read: (load: LoadView) => number | null,
    atLeast: number,
    format: (value: number) => string,
  ) =>
    points.some((point) => [point.ab, point.ba].some((load) => load !== null && read(load) !== null)) && (
      <TimeChart
        title={title}
        series={(["ab", "ba"] as const).map((side) => ({
          name: side === "ab" ? `${a} → ${b}` : `${b} → ${a}`,
          points: points.map((point) => [point.at, point[side] && read(point[side])] as const),
        }))}
        from={ofRun ? first.at - sample.interval_s : last.at - KEPT_S}
        to={last.at}
        atLeast={atLeast}
        format={format}
      />
    );
  return (
    <Panel title={`Link ${name}`} close={close}>
      <Text>
        {last.up ? "up" : "✕ down"}
        {rate !== null && <>, carries {bitRate(rate)} each way</>}
      </Text>
      <DataTable
        label={`Link ${name} now`}
        head={["now", `${a} → ${b}`, `${b} → ${a}`]}
        rows={NOW.map(([quantity, text]) => ({
          key: quantity,
          cells: [quantity, (last.ab && text(last.ab)) ?? "–", (last.ba && text(last.ba)) ?? "–"],
        }))}
      />
      {chart("Rate", (load) => load.bits_per_s, rate ?? 1000, bitRate)}
      {chart("Packets that wait", (load) => load.queued_packets, 8, packets)}
      {chart("Dropped", (load) => load.dropped_per_s, 4, packetRate)}
      {children?.(last.up, rate === null ? null : rate / 1e6)}
    </Panel>
  );
}
