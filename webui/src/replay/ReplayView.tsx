import { NativeSelect, Text } from "@mantine/core";
import { memo, useCallback, useEffect, useMemo, useState } from "react";
import { useKeys } from "../app/keyboard";
import { useSearch } from "../app/location";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { byteSize, duration } from "../parts/units";
import { whenAtRest } from "./address";
import { fromAddress, inAddress, SPEEDS, usualSpeed } from "./clock";
import { Controls } from "./Controls";
import { describe } from "./describe";
import { FabricCanvas } from "./FabricCanvas";
import { Replay } from "./frame";
import { Legend } from "./Legend";
import type { Flow, Trace } from "./trace";
import { usePlayback } from "./usePlayback";

/** Play a recording. */
export function ReplayView({ trace }: { trace: Trace }) {
  const replay = useMemo(() => new Replay(trace), [trace]);
  const [search, change] = useSearch();
  const [speed, setSpeed] = useState(() => usualSpeed(trace.lengthPs));
  const [begin] = useState(() => fromAddress(search.get("at"), trace.beginPs, trace.lengthPs) ?? 0);
  const playback = usePlayback({ from: 0, to: trace.lengthPs, begin, speed, loop: false });
  const { timePs, playing, seek, toggle } = playback;
  const flow = trace.flows.find(({ id }) => String(id) === search.get("flow"))?.id ?? null;
  const write = useMemo(() => whenAtRest((moment) => change({ at: moment })), [change]);
  useEffect(
    () => (playing ? undefined : write(inAddress(timePs, trace.beginPs))),
    [playing, timePs, write, trace.beginPs],
  );
  const chooseFlow = useCallback((id: string | null) => change({ flow: id }), [change]);
  const keys = useMemo(() => {
    const faster = (steps: number): void => {
      const place = SPEEDS.findIndex((each) => each === speed) + steps;
      setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, place))] ?? speed);
    };
    return {
      k: toggle,
      ",": () => seek(replay.previous(timePs)),
      ".": () => seek(replay.next(timePs)),
      "<": () => faster(-1),
      ">": () => faster(1),
    };
  }, [toggle, seek, replay, timePs, speed]);
  useKeys(keys);
  const frame = useMemo(() => replay.frame(timePs), [replay, timePs]);
  const words = describe(trace, frame);
  return (
    <Panel title="Replay">
      <Text>
        {trace.spec}, {trace.scheme}, run {trace.repeat + 1}: {duration(trace.lengthPs / 1e12)} from{" "}
        {(trace.beginPs / 1e9).toFixed(3)} ms on, {trace.hops.length.toLocaleString("en-US")} hops of{" "}
        {trace.packets.length.toLocaleString("en-US")} packets.
        {trace.cut && " The recording was full then: its window was longer."}
      </Text>
      <Controls replay={replay} playback={playback} speed={speed} setSpeed={setSpeed} />
      <FabricCanvas trace={trace} frame={frame} flow={flow} description={words} />
      <Text my={6}>{words}</Text>
      <FlowChoice flows={trace.flows} flow={flow} choose={chooseFlow} />
      <Legend />
      <Quiet>
        Keys: <kbd>k</kbd> plays and pauses, <kbd>,</kbd> and <kbd>.</kbd> step, <kbd>&lt;</kbd> and{" "}
        <kbd>&gt;</kbd> change the speed. The address names the moment: it shows the same wherever this
        recording is open.
      </Quiet>
    </Panel>
  );
}

/** Offer the flows of a recording, which may be thousands: drawn again only when another is chosen, not at every frame. */
export const FlowChoice = memo(function FlowChoice({
  flows,
  flow,
  choose,
}: {
  flows: readonly Flow[];
  flow: number | null;
  choose: (id: string | null) => void;
}) {
  return (
    <NativeSelect
      label="Flow"
      maw={420}
      value={flow ?? ""}
      onChange={(event) => choose(event.currentTarget.value || null)}
    >
      <option value="">all flows</option>
      {flows.map(({ id, source, destination, bytes, trafficClass }) => (
        <option key={id} value={id}>
          {`${id}: ${source} to ${destination}, ${trafficClass}${bytes === null ? "" : `, ${byteSize(bytes)}`}`}
        </option>
      ))}
    </NativeSelect>
  );
});
