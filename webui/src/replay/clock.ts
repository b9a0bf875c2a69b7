/** Times of a recording: as text, in the page's address, and at a chosen speed. */

const PS_PER_MS = 1e9;

/** Seconds that a second of replay shows: of simulated time. */
export const SPEEDS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1] as const;

/** Return the speed at which a recording takes about half a minute. */
export function usualSpeed(lengthPs: number): number {
  const wanted = lengthPs / 1e12 / 30;
  return SPEEDS.find((speed) => speed >= wanted) ?? 1;
}

/** Return an instant of the recording as the address names it: simulated ms of the run, to the picosecond. */
export function inAddress(timePs: number, beginPs: number): string {
  return String(Number(((beginPs + timePs) / PS_PER_MS).toFixed(9)));
}

/** Return the instant that an address names; null: none within the recording. */
export function fromAddress(text: string | null, beginPs: number, lengthPs: number): number | null {
  if (text === null || text === "") return null;
  const timePs = Math.round(Number(text) * PS_PER_MS) - beginPs;
  return timePs >= 0 && timePs <= lengthPs ? timePs : null;
}

/** Return the name of a speed: `1:10 000 slow`. */
export function speedName(speed: number): string {
  if (speed === 1) return "as it was";
  return `${Math.round(1 / speed).toLocaleString("en-US")} times slower`;
}
