/** When a stream counts as old, dead, or to be opened again. Times are milliseconds of a monotonic clock. */

/** Links are usually reported four times a second: silence of this long means that what is shown is old. */
export const OLD_AFTER_MS = 3_000;
/** The server sends something at least every 10 s: after this the connection is dead (docs/api.md). */
export const DEAD_AFTER_MS = 25_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 10_000;

/** quiet: no sample came on this connection, so silence alone says nothing: ask. */
export type Health = "live" | "quiet" | "old" | "dead";

export class StreamWatch {
  #receivedAt: number;
  #greeted = false;
  #sampled = false;
  #oldAfterMs = OLD_AFTER_MS;
  #failures = 0;

  constructor(now: number) {
    this.#receivedAt = now;
  }

  /** Note that a message arrived. */
  received(now: number): void {
    this.#receivedAt = now;
    this.#greeted = true;
    this.#failures = 0;
  }

  /** Note that a sample arrived: from now on silence is a sign of failure. Without switches there are none. */
  sampled(now: number): void {
    this.received(now);
    this.#sampled = true;
  }

  /** Note how far samples are apart, in seconds: silence until the next one is due says nothing. */
  comesEvery(seconds: number): void {
    this.#oldAfterMs = Math.max(OLD_AFTER_MS, 1_500 * seconds);
  }

  /** Note that a connection is being opened: it may take as long as a silent one. */
  opening(now: number): void {
    this.#receivedAt = now;
    this.#greeted = this.#sampled = false;
  }

  health(now: number): Health {
    const silence = now - this.#receivedAt;
    if (!this.#greeted) return silence >= DEAD_AFTER_MS ? "dead" : "live";
    if (!this.#sampled) return silence >= OLD_AFTER_MS ? "quiet" : "live";
    if (silence >= DEAD_AFTER_MS) return "dead";
    return silence >= this.#oldAfterMs ? "old" : "live";
  }

  /** Return the time to the next attempt after a refused or broken connection, in milliseconds, doubling up to 10 s. */
  retryIn(): number {
    const wait = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#failures);
    this.#failures += 1;
    return wait;
  }
}
