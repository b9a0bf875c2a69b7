import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { EventHead } from "../src/api/types";
import { continued, follow } from "../src/api/known";
import { connect } from "../src/live/connection";
import { LiveStore } from "../src/live/store";
import { flow } from "./flow";
import { Stream } from "./stream";

/** The page, in sight or not. */
class Page extends EventTarget {
  hidden = false;
  show(shown: boolean): void {
    this.hidden = !shown;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

const event = (cursor: number, kind: string): EventHead => ({ cursor, at: cursor, kind });
const topicOf = ({ kind }: EventHead): string =>
  kind === "mode-changed" ? "modes" : kind.startsWith("experiment") ? "experiments" : "fabric";

/** Answer for the log of events as docs/api.md says; *log* may be changed. */
function logOf(log: EventHead[]): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (url: string) => {
    asked.push(url);
    const query = new URL(url, "http://localhost").searchParams;
    const [since, limit] = [Number(query.get("since")), Number(query.get("limit"))];
    const topics = query.get("topics")?.split(",");
    const events = log
      .filter((one) => one.cursor > since && (!topics || topics.includes(topicOf(one))))
      .slice(0, limit);
    return Promise.resolve(
      Response.json({ events, cursor: (events.length === limit ? events : log).at(-1)?.cursor ?? 0 }),
    );
  });
  return asked;
}

let store: LiveStore;
let queries: QueryClient;
let end: () => void;
const cursors = (): number[] => store.log.map((one) => one.cursor);
const answered = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

let page: Page;

beforeEach(() => {
  vi.stubGlobal("EventSource", Stream);
  vi.stubGlobal("document", (page = new Page()));
});
afterEach(() => {
  vi.useRealTimers();
  end();
  vi.unstubAllGlobals();
});

function watch(log: EventHead[]): string[] {
  const asked = logOf(log);
  store = new LiveStore();
  queries = new QueryClient();
  end = connect(store, queries);
  return asked;
}

test("events of before the page was opened are there, however often modes changed since", async () => {
  const modes = Array.from({ length: 3_000 }, (_, index) => event(index + 3, "mode-changed"));
  watch([event(1, "link-down"), event(2, "link-up"), ...modes]);
  Stream.newest.greet("a-3002", 3_002);
  await answered();
  expect(cursors()).toEqual([2, 1]);
});

test("long logs are read to their end, of which the newest stay", async () => {
  const asked = watch(Array.from({ length: 10_600 }, (_, index) => event(index + 1, "link-up")));
  Stream.newest.greet("a-10600", 10_600);
  await answered();
  await answered();
  expect(asked.length).toBe(2);
  expect([cursors().length, cursors()[0]]).toEqual([500, 10_600]);
});

test("an event that comes by the stream and in the answer is in the log once", async () => {
  watch([event(1, "link-down"), event(2, "link-up")]);
  Stream.newest.greet("a-1", 1);
  await answered();
  Stream.newest.send("fabric", event(2, "link-up"), "a-2");
  Stream.newest.send("modes", event(3, "mode-changed"), "a-3");
  expect(cursors()).toEqual([2, 1]);
});

test("after a controller's restart its events and flows are not taken for those of before", async () => {
  const log = [event(1, "link-down"), event(2, "link-up")];
  watch(log);
  Stream.newest.greet("a-2", 2);
  await answered();
  Stream.newest.send("flows", { at: 1, interval_s: 0.5, flows: [flow(1, { lost: 5 })], more: 0 });
  log.splice(0, 2, event(1, "switch-up"));
  Stream.newest.greet("b-1", 1);
  await answered();
  expect(store.log.map((one) => one.kind)).toEqual(["switch-up"]);
  expect(store.flowHistory.recent(60)).toEqual([]);
  expect(store.flows).toBeNull();
});

test("a stream that goes on keeps what is known, and events that it lost are asked for", async () => {
  const log = [event(1, "link-down")];
  watch(log);
  Stream.newest.greet("a-1", 1);
  await answered();
  Stream.newest.send("flows", { at: 1, interval_s: 0.5, flows: [flow(1)], more: 0 });
  Stream.newest.greet("a-1", 1, true);
  expect(store.flowHistory.recent(60).length).toBe(1);
  log.push(event(2, "link-up"));
  Stream.newest.send("gap", { lost: 1 });
  await answered();
  expect(cursors()).toEqual([2, 1]);
});

test("lists of flows are continued while the stream goes on, and asked for anew at another controller", () => {
  watch([]);
  const key = ["flows", ""];
  queries.setQueryData(key, [3, 2, 1]);
  Stream.newest.greet("a-1", 1); // the list is of this controller: it was asked for while the stream was opened
  expect(continued(queries, key)).toEqual([3, 2, 1]);
  Stream.newest.greet("a-1", 1, true);
  Stream.newest.send("gap", { lost: 100 });
  expect(continued(queries, key)).toEqual([3, 2, 1]);
  Stream.newest.greet("b-1", 1);
  expect(continued(queries, key)).toBeUndefined();
  queries.setQueryData(key, [2, 1]);
  expect(continued(queries, key)).toEqual([2, 1]);
});

test("what was known of a run is forgotten with the next one, and not before", () => {
  queries = new QueryClient();
  const [run, own] = [
    ["scheme", "/runs/current"],
    ["scheme", ""],
  ];
  follow(queries, 5);
  queries.setQueryData(run!, "caps");
  queries.setQueryData(own!, "ecmp");
  follow(queries, 5);
  expect(queries.getQueryData(run!)).toBe("caps");
  follow(queries, 6);
  expect(queries.getQueryData(run!)).toBeUndefined();
  expect(queries.getQueryData(own!)).toBe("ecmp");
});

test("a stream without samples that has broken off is lost until it is there again, though the controller answers", async () => {
  vi.useFakeTimers();
  watch([]);
  Stream.newest.greet("a-1", 1);
  expect(store.connection).toBe("live");
  Stream.newest.send("error", {});
  await vi.advanceTimersByTimeAsync(8_000);
  expect(store.connection).toBe("lost");
  Stream.newest.greet("a-1", 1, true);
  expect(store.connection).toBe("live");
});

test("a stream that is refused from the start is lost, not for ever about to be there", () => {
  watch([]);
  Stream.newest.send("error", {});
  expect(store.connection).toBe("connecting");
  Stream.newest.readyState = Stream.CLOSED;
  Stream.newest.send("error", {});
  expect(store.connection).toBe("lost");
});

test("what happened stays in the log however long an experiment reports its progress", async () => {
  const progress = Array.from({ length: 700 }, (_, index) => event(index + 3, "experiment-progress"));
  watch([event(1, "link-down"), event(2, "link-up"), ...progress]);
  Stream.newest.greet("a-702", 702);
  await answered();
  for (let cursor = 703; cursor < 1_300; cursor += 1)
    Stream.newest.send("experiments", event(cursor, "experiment-progress"), `a-${cursor}`);
  expect(cursors()).toEqual([2, 1]);
});

test("events of an experiment ask again for its answers, not for all results and lists each second", async () => {
  vi.useFakeTimers();
  watch([]);
  Stream.newest.greet("a-1", 1);
  await vi.advanceTimersByTimeAsync(1_000);
  const keys = [["list"], [5], [5, "progress"], [4], [4, "compare", 5], [9], [9, "figures"]].map((rest) => [
    "experiments",
    ...rest,
  ]);
  const asked = async (happened: object): Promise<unknown[]> => {
    for (const key of keys) queries.setQueryData(key, "known");
    Stream.newest.send("experiments", { cursor: 2, at: 1, ...happened });
    await vi.advanceTimersByTimeAsync(1_000);
    return keys
      .filter((key) => queries.getQueryState(key)?.isInvalidated)
      .map((key) => key.slice(1).join(" "));
  };
  const progress = { kind: "experiment-progress", experiment: 5, progress: { runs_done: 1 } };
  expect(await asked(progress)).toEqual([]);
  expect(queries.getQueryData(["experiments", 5, "progress"])).toEqual({ runs_done: 1 });
  expect(await asked({ kind: "run-added", experiment: 5, parent: null })).toEqual([
    "5",
    "5 progress",
    "4 compare 5",
  ]);
  const ended = { kind: "experiment-ended", experiment: 5 };
  const mine = ["5", "5 progress", "4 compare 5"];
  expect(await asked({ ...ended, parent: 9 })).toEqual([...mine, "9", "9 figures"]);
  expect(await asked({ ...ended, parent: null })).toEqual(["list", ...mine]);
});

test("a page that is hidden for minutes reads no stream, and goes on where it was when it is seen", async () => {
  vi.useFakeTimers();
  watch([]);
  const first = Stream.newest;
  first.greet("a-7", 7);
  page.show(false);
  await vi.advanceTimersByTimeAsync(30_000);
  page.show(true);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(first.closed).toBe(false);
  page.show(false);
  await vi.advanceTimersByTimeAsync(600_000);
  expect([first.closed, Stream.newest === first, store.connection]).toEqual([true, true, "old"]);
  page.show(true);
  expect(Stream.newest).not.toBe(first);
  expect(Stream.newest.url).toContain("since=a-7");
  Stream.newest.greet("a-7", 7, true);
  expect(store.connection).toBe("live");
});
