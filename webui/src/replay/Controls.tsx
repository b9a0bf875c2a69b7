import { Button, Group, NativeSelect, Slider, Text } from "@mantine/core";
import { SPEEDS, speedName } from "./clock";
import type { Playback } from "./usePlayback";
import type { Replay } from "./frame";

/** Offer play, pause, step, speed and seek. */
export function Controls({
  replay,
  playback,
  speed,
  setSpeed,
}: {
  replay: Replay;
  playback: Playback;
  speed: number;
  setSpeed: (speed: number) => void;
}) {
  const { timePs, playing, seek, toggle } = playback;
  const { beginPs, lengthPs } = replay.trace;
  return (
    <Group my="xs" gap="xs" align="end">
      <Button onClick={() => seek(replay.previous(timePs))} aria-label="Step back to the packet before">
        ◀ Step
      </Button>
      <Button onClick={toggle}>{playing ? "Pause" : "Play"}</Button>
      <Button onClick={() => seek(replay.next(timePs))} aria-label="Step to the next packet">
        Step ▶
      </Button>
      <NativeSelect
        aria-label="Speed"
        value={speed}
        onChange={(event) => setSpeed(Number(event.currentTarget.value))}
        data={SPEEDS.map((each) => ({ value: String(each), label: speedName(each) }))}
      />
      <Slider
        flex="1 1 240px"
        thumbLabel="Moment, in ms of the run"
        label={null}
        min={0}
        max={lengthPs}
        step={Math.max(1, Math.floor(lengthPs / 10_000))}
        value={timePs}
        thumbProps={{ "aria-valuetext": moment(timePs, beginPs) }}
        onChange={seek}
      />
      {/* Without a word from a screen reader at each frame. */}
      <Text component="output" aria-live="off" style={{ fontVariantNumeric: "tabular-nums" }}>
        {moment(timePs, beginPs)}
      </Text>
    </Group>
  );
}

function moment(timePs: number, beginPs: number): string {
  return `${((beginPs + timePs) / 1e9).toFixed(4)} ms`;
}
