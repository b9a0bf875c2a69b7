/** The stream of events: opened, watched, opened again; what it sends goes to the store and to the query cache. */

import type { QueryClient, QueryKey } from "@tanstack/react-query";
import { BASE, get } from "../api/client";
import { amend, askAgain } from "../api/known";
import type { EventsView, ModesView, ProgressView } from "../api/schema";
import type { EventHead, FlowsSample, Hello, LinksSample } from "../api/types";
import { natural } from "../parts/order";
import { LATE_S, LOG_TOPICS, type LiveStore, type LogTopic } from "./store";
import { StreamWatch } from "./watch";

const TICK_MS = 500;
/** A controller that does not answer for this long counts as silent. */
const ANSWER_MS = 2_000;
/** What events say has changed is asked for again at most this often. */
const REFRESH_MS = 300;
/** Topics of what a person reads: modes change many times a second. */
const READ_TOPICS: readonly LogTopic[] = LOG_TOPICS.filter((topic) => topic !== "modes");
/** Logged events of before this page was opened are asked for by so many. */
const PAGE = 10_000;

/**
 * A page that is out of sight for this long reads no stream: the controller asks switches and agents for its sake, and a
 * browser has six connections to a controller for all of its tabs.
 */
const UNSEEN_MS = 60_000;

/** What to ask again when something of a topic happened. */
const QUERIES: Record<LogTopic, readonly string[]> = {
  fabric: ["fabric", "health"],
  modes: [],
  scheme: ["scheme", "health"],
  agents: ["agents", "health", "fabric"],
  experiments: ["engine"],
  faults: ["faults", "fabric"],
};

/**
 * Return true if *key* is of an answer about one of *experiments*, or of the list of all where that counts (*listed*):
 * lists and results are long, and events many while experiments run.
 */
const isAbout = (key: QueryKey, experiments: ReadonlySet<unknown>, listed: boolean): boolean =>
  key[0] === "experiments" && (key[1] === "list" ? listed : key.some((part) => experiments.has(part)));

/** Keys of lists that are continued (api/known.ts). */
const LISTS: ReadonlySet<unknown> = new Set(["flows", "flow-records"]);

/** Watch the controller until the answer is called. *source*: of what (api/source.ts). */
export function connect(store: LiveStore, queries: QueryClient, source = ""): () => void {
  const watch = new StreamWatch(performance.now());
  let stream: EventSource | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;
  const stale = new Set<string>();
  const changed = new Set<unknown>();
  let listed = false;
  let modesAheadS = store.aheadS;
  let refresh: ReturnType<typeof setTimeout> | undefined;

  function received(sampled: boolean): void {
    const now = performance.now();
    if (sampled) watch.sampled(now);
    else watch.received(now);
    store.receivedAt = now;
    store.setConnection("live");
  }

  function refreshSoon(keys: readonly string[]): void {
    for (const key of keys) stale.add(key);
    if (stale.size + changed.size === 0) return;
    refresh ??= setTimeout(() => {
      refresh = undefined;
      const [names, about] = [new Set<unknown>(stale), [new Set(changed), listed] as const];
      const predicate = ({ queryKey }: { queryKey: QueryKey }): boolean =>
        names.has(queryKey[0]) || isAbout(queryKey, ...about);
      void askAgain(queries, { predicate }, false);
      stale.clear();
      changed.clear();
      listed = false;
    }, REFRESH_MS);
  }

  /** Ask for everything again; *continuing*: lists of flows, which do not come from events, only for what is new. */
  function askAll(continuing: boolean): void {
    const predicate = ({ queryKey }: { queryKey: QueryKey }): boolean =>
      !continuing || !LISTS.has(queryKey[0]);
    void askAgain(queries, { predicate }, !continuing);
  }

  function happened(topic: LogTopic, event: EventHead): void {
    store.takeEvents([event]);
    if (event.kind === "experiment-progress") {
      const key = ["experiments", event["experiment"], "progress"];
      const progress = event["progress"] as ProgressView;
      amend<ProgressView>(queries, key, (known) => (known.at > progress.at ? known : progress));
      return;
    }
    if (topic === "experiments") {
      for (const id of [event["experiment"], event["parent"]]) if (id != null) changed.add(id);
      listed ||= event.kind !== "run-added" && event["parent"] == null; // points are not in the list
    }
    refreshSoon(QUERIES[topic]);
    if (Math.abs(store.aheadS - modesAheadS) > LATE_S) {
      modesAheadS = store.aheadS; // a clock was set: the controller's times of modes follow it with the next event
      refreshSoon(["modes"]);
    }
    if (event.kind === "mode-changed") {
      amend<ModesView>(queries, ["modes", source], (known) => withMode(known, event));
    }
  }

  /** Ask for what the log lacks; refused or unanswered, it begins with what comes. */
  function refill(): void {
    past.abort();
    past = new AbortController();
    pastEvents(source, past.signal).then(
      (events) => store.takeEvents(events),
      () => undefined,
    );
  }

  function open(): void {
    stream?.close();
    resting = false;
    const since = store.hello ? `&since=${encodeURIComponent(lastId ?? store.hello.id)}` : "";
    stream = new EventSource(
      `${BASE}${source}/events?topics=${[...LOG_TOPICS, "links", "flows"].join(",")}${since}`,
    );
    watch.opening(performance.now());
    const on = <T>(name: string, take: (data: T) => void): void => {
      stream?.addEventListener(name, (message: MessageEvent<string>) => {
        if (message.lastEventId) lastId = message.lastEventId;
        received(name === "links" || name === "flows");
        take(JSON.parse(message.data) as T);
      });
    };
    on<Hello>("hello", (hello) => {
      if (!hello.resumed) {
        // Anything may have happened since: the controller was restarted, or its events are gone.
        askAll(store.hello === null);
        store.clear();
      }
      if (store.log.length === 0) refill();
      store.takeHello(hello);
      if (!hello.resumed) modesAheadS = store.aheadS;
    });
    on<LinksSample>("links", (sample) => {
      watch.comesEvery(sample.interval_s);
      store.takeLinks(sample);
    });
    on<FlowsSample>("flows", (sample) => store.takeFlows(sample));
    on<{ lost: number }>("gap", () => {
      refill();
      askAll(true); // the controller is the same; to ask for all flows again would delay a slow reader even more
    });
    for (const topic of LOG_TOPICS) on<EventHead>(topic, (event) => happened(topic, event));
    stream.addEventListener("error", () => {
      const refused = stream?.readyState === EventSource.CLOSED; // else the browser tries again by itself
      if (refused || store.connection !== "connecting") store.setConnection("lost");
      watch.opening(performance.now()); // what else the controller answers makes no stream of it
      if (refused) again();
    });
  }

  /** Let go of the stream once the page was hidden for some time, and take it up where it was once it is seen. */
  function seen(): void {
    clearTimeout(unseen);
    if (document.hidden) unseen = setTimeout(rest, UNSEEN_MS);
    else if (resting) open();
  }

  function rest(): void {
    resting = true;
    clearTimeout(retry);
    stream?.close();
    store.setConnection("old");
  }

  function again(): void {
    stream?.close();
    clearTimeout(retry);
    retry = setTimeout(open, watch.retryIn());
  }

  let lastId: string | null = null;
  let past = new AbortController();
  let asking = false;
  let resting = false;
  let unseen: ReturnType<typeof setTimeout> | undefined;
  const tick = setInterval(() => {
    if (resting) return;
    const health = watch.health(performance.now());
    if (health === "dead") {
      store.setConnection("lost");
      watch.opening(performance.now());
      again();
    } else if (health === "quiet" && !asking) {
      asking = true;
      get(`${source}/health`, AbortSignal.timeout(ANSWER_MS))
        .then(
          () => received(false),
          () => store.setConnection("old"),
        )
        .finally(() => (asking = false));
    } else if (health === "old" && store.connection === "live") {
      store.setConnection("old");
    }
  }, TICK_MS);
  open();
  document.addEventListener("visibilitychange", seen);
  seen();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    clearTimeout(unseen);
    clearInterval(tick);
    clearTimeout(retry);
    clearTimeout(refresh);
    past.abort();
    stream?.close();
  };
}

/** Return all logged events that a person reads, however many changes of modes are between them. */
export async function pastEvents(source: string, signal: AbortSignal): Promise<readonly EventHead[]> {
  const all: EventHead[] = [];
  for (let since = 0; ;) {
    const { events, cursor } = await get<EventsView>(
      `${source}/events?topics=${READ_TOPICS.join(",")}&since=${since}&limit=${PAGE}`,
      signal,
    );
    all.push(...events);
    if (events.length < PAGE) return all;
    since = cursor;
  }
}

/** Return the modes of all leaves after one changed; as they are if that leaf's is known of a later time. */
export function withMode(known: ModesView, event: EventHead): ModesView {
  const { leaf, mode, at } = event as unknown as { leaf: string; mode: "on" | "off"; at: number };
  if (known.leaves.some((entry) => entry.leaf === leaf && entry.since_at > at)) return known;
  const others = known.leaves.filter((entry) => entry.leaf !== leaf);
  const leaves = [...others, { leaf, mode, since_at: at }].sort((left, right) =>
    natural(left.leaf, right.leaf),
  );
  return { ...known, leaves };
}
