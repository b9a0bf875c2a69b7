/** What the stream of events has sent, in slices that views subscribe to one by one. */

import type { EventHead, FlowsSample, Hello, LinksSample, Mode } from "../api/types";
import { FlowHistory } from "./flowHistory";
import { LinkHistory } from "./linkHistory";

export const LOG_TOPICS = ["fabric", "modes", "scheme", "agents", "experiments", "faults"] as const;
export type LogTopic = (typeof LOG_TOPICS)[number];
export type Slice = "connection" | "links" | "flows" | "modes" | "log";

/** connecting: nothing received yet; live; old: silent for some seconds; lost: trying again. */
export type Connection = "connecting" | "live" | "old" | "lost";

export interface ModeChange {
  at: number;
  leaf: string;
  mode: Mode;
  cause: string;
}

const KEPT_MODES = 2_000;
const KEPT_LOG = 500;

/** Modes change many times a second: the log is for what a person reads. */
const UNREAD: ReadonlySet<string> = new Set(["mode-switched", "mode-changed", "state-sent"]);

export class LiveStore {
  connection: Connection = "connecting";
  /** Performance clock (ms) of the last message. */
  receivedAt: number | null = null;
  hello: Hello | null = null;
  links: LinksSample | null = null;
  flows: FlowsSample | null = null;
  /** Oldest first. */
  modes: readonly ModeChange[] = [];
  /** Newest first. */
  log: readonly EventHead[] = [];
  /** Events that this page was too slow for. */
  missed = 0;
  readonly linkHistory = new LinkHistory();
  readonly flowHistory = new FlowHistory();
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
    this.#notify("connection");
  }

  takeLinks(sample: LinksSample): void {
    this.linkHistory.take(sample);
    this.links = sample;
    this.#notify("links");
  }

  takeFlows(sample: FlowsSample): void {
    this.flowHistory.take(sample);
    this.flows = sample;
    this.#notify("flows");
  }

  takeEvent(topic: LogTopic, event: EventHead): void {
    if (topic === "modes" && event.kind === "mode-changed") {
      const { at, leaf, mode, cause } = event as unknown as ModeChange;
      this.modes = [...this.modes.slice(1 - KEPT_MODES), { at, leaf, mode, cause }];
      this.#notify("modes");
    }
    if (UNREAD.has(event.kind)) return;
    this.log = [event, ...this.log].slice(0, KEPT_LOG);
    this.#notify("log");
  }

  /** Events of before the stream was opened, oldest first. */
  takePast(events: readonly EventHead[]): void {
    const known = new Set(this.log.map((event) => event.cursor));
    const past = events.filter((event) => !UNREAD.has(event.kind) && !known.has(event.cursor));
    this.log = [...this.log, ...past.reverse()].slice(0, KEPT_LOG);
    this.#notify("log");
  }

  takeGap(lost: number): void {
    this.missed += lost;
    this.#notify("connection");
  }
}
