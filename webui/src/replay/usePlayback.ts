import { useCallback, useEffect, useState } from "react";

/** Where a replay is, ps from the window's begin, and how it goes on. */
export interface Playback {
  timePs: number;
  playing: boolean;
  seek: (timePs: number) => void;
  toggle: () => void;
}

/** What is played, ps from the window's begin. */
export interface Stretch {
  from: number;
  to: number;
  /** Where it is first. */
  begin: number;
  /** Simulated seconds a second. */
  speed: number;
  /** Whether it plays at once (unless the reader wants less motion), and anew when it is over; else it stops there. */
  loop: boolean;
}

/** A hidden page draws no frames: of a longer pause between two, no more than this counts, ms. */
const LONGEST_FRAME_MS = 500;

/**
 * How often a replay is drawn, ms. Packets move as smoothly to the eye as with each frame of a display, for two thirds of the
 * processor time, which a lab beside the page lacks on two cores.
 */
const DRAWN_EVERY_MS = 1000 / 30;
/** Displays' frames come some milliseconds sooner or later. */
const EARLY_MS = 4;

/** Return true if a frame at *now*, ms, is to be drawn; *before*: when the one before it was drawn. */
export const isDue = (before: number | null, now: number): boolean =>
  before === null || now - before >= DRAWN_EVERY_MS - EARLY_MS;

/** Return the time to play for a frame at *now*, ms; *before*: when the frame before it was drawn. */
export const frameMs = (before: number | null, now: number): number =>
  before === null ? 0 : Math.min(now - before, LONGEST_FRAME_MS);

/** Play a stretch of a recording. */
export function usePlayback({ from, to, begin, speed, loop }: Stretch): Playback {
  const [timePs, setTimePs] = useState(begin);
  const [playing, setPlaying] = useState(
    () => loop && !matchMedia("(prefers-reduced-motion: reduce)").matches,
  );
  useEffect(() => {
    if (!playing) return;
    let before: number | null = null;
    let request = requestAnimationFrame(function tick(now: number) {
      request = requestAnimationFrame(tick);
      if (!isDue(before, now)) return;
      const passedPs = frameMs(before, now) * 1e9 * speed;
      before = now;
      setTimePs((current) => (loop && current >= to ? from : Math.min(to, current + passedPs)));
    });
    return () => cancelAnimationFrame(request);
  }, [playing, from, to, speed, loop]);
  const over = timePs >= to && !loop;
  useEffect(() => {
    if (over) setPlaying(false);
  }, [over]);
  const seek = useCallback(
    (wantedPs: number) => {
      setPlaying(false);
      setTimePs(Math.min(to, Math.max(from, wantedPs)));
    },
    [from, to],
  );
  const toggle = useCallback(() => {
    if (over) setTimePs(from);
    setPlaying(!playing);
  }, [over, playing, from]);
  return { timePs, playing, seek, toggle };
}
