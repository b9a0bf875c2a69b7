/** What the stream of events has sent, in slices that views subscribe to one by one. */

import type { EventHead, FlowsSample, Hello, LinksSample } from "../api/types";
import { eventWords } from "../fabric/eventWords";
import { FlowHistory } from "./flowHistory";
import { LinkHistory } from "./linkHistory";

export const LOG_TOPICS = ["fabric", "modes", "scheme", "agents", "experiments", "faults"] as const;
export type LogTopic = (typeof LOG_TOPICS)[number];
export type Slice = "connection" | "links" | "flows" | "log";

/** connecting: nothing received yet; live; old: silent for some seconds; lost: trying again. */
export type Connection = "connecting" | "live" | "old" | "lost";

const KEPT_LOG = 500;
/** Seconds by which a sample may be late; beyond, the controller's clock or this machine's was set. */
export const LATE_S = 2;

export class LiveStore {
  connection: Connection = "connecting";
  /** Performance clock (ms) of the last message. */
  receivedAt: number | null = null;
  hello: Hello | null = null;
  /** By how much the controller's clock is ahead of this machine's, in seconds. */
  aheadS = 0;
  links: LinksSample | null = null;
  flows: FlowsSample | null = null;
  /** Events that have words, newest first: others come each second while an experiment runs. */
  log: readonly EventHead[] = [];
  linkHistory = new LinkHistory();
  flowHistory = new FlowHistory();
  readonly #listeners = new Map<Slice, Set<() => void>>();

  subscribe(slice: Slice, listener: () => void): () => void {
    let listeners = this.#listeners.get(slice);
    if (!listeners) this.#listeners.set(slice, (listeners = new Set()));
    const known = listeners;
    known.add(listener);
    return () => known.delete(listener);
  }

  #notify(slice: Slice): void {
    for (const listener of this.#listeners.get(slice) ?? []) listener();
  }

  setConnection(connection: Connection): void {
    if (connection === this.connection) return;
    this.connection = connection;
    this.#notify("connection");
  }

  takeHello(hello: Hello): void {
    this.hello = hello;
    this.aheadS = hello.at - Date.now() / 1000;
    this.#notify("connection");
  }

  #takeClock(at: number): void {
    const aheadS = at - Date.now() / 1000;
    if (Math.abs(aheadS - this.aheadS) > LATE_S) this.aheadS = aheadS;
  }

  /** Take a sample; *at*: its time in charts, if that is a simulated run's. */
  takeLinks(sample: LinksSample, at = sample.at): void {
    this.#takeClock(sample.at);
    this.linkHistory.take(sample, at);
    this.links = sample;
    this.#notify("links");
  }

  takeFlows(sample: FlowsSample): void {
    this.#takeClock(sample.at);
    this.flowHistory.take(sample);
    this.flows = sample;
    this.#notify("flows");
  }

  /** Add those of *events* that have words, in any order; some may be there already. */
  takeEvents(events: readonly EventHead[]): void {
    const worded = events.filter((event) => eventWords(event) !== null);
    if (worded.length === 0) return; // modes change many times a second
    const known = new Set(this.log.map((event) => event.cursor));
    const fresh = worded.filter((event) => !known.has(event.cursor));
    if (fresh.length === 0) return;
    this.log = [...fresh, ...this.log].sort((left, right) => right.cursor - left.cursor).slice(0, KEPT_LOG);
    this.#notify("log");
  }

  /** Forget what came so far: the controller may be another, whose cursors and flows count from 1 again. */
  clear(): void {
    this.links = null;
    this.flows = null;
    this.log = [];
    this.linkHistory = new LinkHistory();
    this.flowHistory = new FlowHistory();
    for (const slice of ["links", "flows", "log"] as const) this.#notify(slice);
  }
}
