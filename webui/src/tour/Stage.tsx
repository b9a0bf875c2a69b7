import { Button, Group, Text } from "@mantine/core";
import { useMemo } from "react";
import { useKeys } from "../app/keyboard";
import { describe } from "../replay/describe";
import { FabricCanvas } from "../replay/FabricCanvas";
import { Replay } from "../replay/frame";
import { Legend } from "../replay/Legend";
import type { Trace } from "../replay/trace";
import { usePlayback } from "../replay/usePlayback";
import type { Step } from "./steps";

const PS_PER_MS = 1e9;
/** A packet is on a link for 4 ms of the run: a tenth of a second here. */
const SPEED = 0.04;

/** Replay the part of a recording that a step describes, in a loop. */
export function Stage({ trace, step }: { trace: Trace; step: Step }) {
  const replay = useMemo(() => new Replay(trace), [trace]);
  const { timePs, playing, toggle } = usePlayback({
    from: step.from * PS_PER_MS,
    to: Math.min(trace.lengthPs, step.to * PS_PER_MS),
    begin: step.at * PS_PER_MS,
    speed: SPEED,
    loop: true,
  });
  useKeys(useMemo(() => ({ k: toggle }), [toggle]));
  const frame = useMemo(() => replay.frame(timePs), [replay, timePs]);
  const words = describe(trace, frame);
  return (
    <>
      <FabricCanvas trace={trace} frame={frame} flow={step.flow} description={words} />
      <Group my="xs" gap="sm">
        <Button onClick={toggle} title="Key k">
          {playing ? "Pause" : "Play"}
        </Button>
        <Text component="output" aria-live="off" style={{ fontVariantNumeric: "tabular-nums" }}>
          {((trace.beginPs + timePs) / PS_PER_MS).toFixed(1)} ms of the run
        </Text>
        <Text c="dimmed">{Math.round(1 / SPEED)} times slower than it was</Text>
      </Group>
      <Text mb={6}>{words}</Text>
      <Legend />
    </>
  );
}
