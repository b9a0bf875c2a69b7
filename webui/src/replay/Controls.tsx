import { SPEEDS, speedName } from "./clock";
import type { Playback } from "./usePlayback";
import type { Replay } from "./frame";

/** Play, pause, step, speed and seek. */
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
  const { at, playing, seek, toggle } = playback;
  const { beginPs, lengthPs } = replay.trace;
  return (
    <div className="replay-controls">
      <button onClick={() => seek(replay.previous(at))} aria-label="Step back to the packet before">
        ◀ Step
      </button>
      <button onClick={toggle} aria-pressed={playing}>
        {playing ? "Pause" : "Play"}
      </button>
      <button onClick={() => seek(replay.next(at))} aria-label="Step to the next packet">
        Step ▶
      </button>
      <label>
        Speed{" "}
        <select value={speed} onChange={(event) => setSpeed(Number(event.target.value))}>
          {SPEEDS.map((each) => (
            <option key={each} value={each}>
              {speedName(each)}
            </option>
          ))}
        </select>
      </label>
      <label className="replay-seek">
        <span className="unseen">Moment, in ms of the run</span>
        <input
          type="range"
          min={0}
          max={lengthPs}
          step={Math.max(1, Math.floor(lengthPs / 10_000))}
          value={at}
          aria-valuetext={moment(at, beginPs)}
          onChange={(event) => seek(Number(event.target.value))}
        />
      </label>
      <output>{moment(at, beginPs)}</output>
    </div>
  );
}

function moment(at: number, beginPs: number): string {
  return `${((beginPs + at) / 1e9).toFixed(4)} ms`;
}
