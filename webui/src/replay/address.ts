/** Which run and moment the page's address names, and where the run's recording is. */

/** The usual length of a window, ms: the command's, too. */
export const LENGTH_MS = 1000;
/** The longest that the API records, ms. */
export const MOST_MS = 600_000;

/** A window of a run, ms from its begin. */
export interface Window {
  from: number;
  length: number;
}

/** Return the API's path of the recording that an address asks for; null: it asks for none. */
export function recordingPath(search: URLSearchParams): string | null {
  const experiment = Number(search.get("experiment"));
  const scheme = search.get("scheme");
  if (!Number.isInteger(experiment) || experiment < 1 || !scheme) return null;
  const from = Math.max(0, Math.floor(Number(search.get("from")) || 0));
  const length = Math.max(1, Math.floor(Number(search.get("for")) || LENGTH_MS));
  const repeat = Math.max(1, Math.floor(Number(search.get("repeat")) || 1));
  const query = new URLSearchParams({
    scheme,
    repeat: String(repeat),
    from_ms: String(from),
    for_ms: String(length),
  });
  return `/experiments/${experiment}/recording?${query}`;
}

/**
 * Return the address under which a window of an experiment's run is played; a run on switches has only its recorded
 * window.
 */
export function replayAddress(experiment: number, scheme: string, window?: Window): string {
  const chosen = window && { from: String(window.from), for: String(window.length) };
  return `/watch/replay?${new URLSearchParams({ experiment: String(experiment), scheme, ...chosen })}`;
}

/** How long a moment is shown before the address names it, ms. */
const REST_MS = 250;

/**
 * Return *write* for values that change at every move of the pointer: called with those that stay for REST_MS. Browsers
 * refuse more than some hundred changes of the address in ten seconds. What a call returns takes it back.
 */
export function whenAtRest(write: (value: string) => void): (value: string) => () => void {
  return (value) => {
    const timer = setTimeout(() => write(value), REST_MS);
    return () => clearTimeout(timer);
  };
}
