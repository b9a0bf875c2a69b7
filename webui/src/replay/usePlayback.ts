import { useCallback, useEffect, useState } from "react";

/** Where a replay is, ps from the window's begin, and how it goes on. */
export interface Playback {
  at: number;
  playing: boolean;
  seek: (at: number) => void;
  toggle: () => void;
}

/** Play from *begin* to *length*, *speed* simulated seconds a second. */
export function usePlayback(begin: number, length: number, speed: number): Playback {
  const [at, setAt] = useState(begin);
  const [playing, setPlaying] = useState(false);
  useEffect(() => {
    if (!playing) return;
    let before: number | null = null;
    let request = requestAnimationFrame(function tick(now: number) {
      const passedPs = before === null ? 0 : (now - before) * 1e9 * speed;
      before = now;
      setAt((current) => Math.min(length, current + passedPs));
      request = requestAnimationFrame(tick);
    });
    return () => cancelAnimationFrame(request);
  }, [playing, length, speed]);
  const over = at >= length;
  useEffect(() => {
    if (over) setPlaying(false);
  }, [over]);
  const seek = useCallback(
    (to: number) => {
      setPlaying(false);
      setAt(Math.min(length, Math.max(0, to)));
    },
    [length],
  );
  const toggle = useCallback(() => {
    if (over) setAt(0);
    setPlaying(!playing);
  }, [over, playing]);
  return { at, playing, seek, toggle };
}
