/** Answers that were asked for before an event, and come after it. */

import { QueryClient, QueryObserver, type QueryKey } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { askAgain } from "../src/api/known";
import { connect } from "../src/live/connection";
import { LiveStore } from "../src/live/store";
import { Stream } from "./stream";

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/** Requests under one key, as a view of the page makes them: each is open until it is answered. */
class Requests {
  readonly open: ((answer: unknown) => void)[] = [];
  readonly #stop: () => void;
  constructor(
    readonly queries: QueryClient,
    readonly key: QueryKey,
  ) {
    const queryFn = () => new Promise((resolve) => this.open.push(resolve));
    this.#stop = new QueryObserver(queries, { queryKey: key, queryFn }).subscribe(() => undefined);
  }
  get known(): unknown {
    return this.queries.getQueryData(this.key);
  }
  async answer(answer: unknown): Promise<void> {
    this.open.shift()?.(answer);
    await turn();
  }
  stop(): void {
    this.#stop();
  }
}

let queries: QueryClient;
let end: () => void;
let requests: Requests;

beforeEach(() => {
  vi.stubGlobal("EventSource", Stream);
  vi.stubGlobal("document", new EventTarget());
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ events: [], cursor: 0 })));
  queries = new QueryClient();
  end = connect(new LiveStore(), queries);
  Stream.newest.greet("a-1", 1);
});
afterEach(() => {
  requests.stop();
  end();
  queries.clear();
  vi.unstubAllGlobals();
});

const modes = (mode: string, since_at: number) => ({ leaves: [{ leaf: "l1", mode, since_at }] });
const changed = (mode: string, at: number) =>
  Stream.newest.send("modes", { kind: "mode-changed", cursor: at, leaf: "l1", mode, at }, `a-${at}`);

test.each(["first", "second"])(
  "the %s answer for modes is of before a change that came first",
  async (nth) => {
    requests = new Requests(queries, ["modes", ""]);
    if (nth === "second") {
      await requests.answer(modes("off", 10));
      void queries.invalidateQueries({ queryKey: ["modes"] });
      await turn();
    }
    changed("on", 20);
    changed("off", 21);
    changed("on", 22);
    await requests.answer(modes("off", 10));
    expect(requests.known).toMatchObject(modes("on", 22));
  },
);

test("an answer for modes that is newer than the changes that came first stays", async () => {
  requests = new Requests(queries, ["modes", ""]);
  changed("on", 20);
  await requests.answer(modes("off", 21));
  expect(requests.known).toMatchObject(modes("off", 21));
  changed("on", 20.5);
  expect(requests.known).toMatchObject(modes("off", 21));
});

test("modes are asked for again by the first event after the controller's clock was set back", async () => {
  const hello = { id: "a-1", cursor: 1, version: "", at: 1_000, topics: [], resumed: false };
  Stream.newest.send("hello", hello, "a-1");
  requests = new Requests(queries, ["modes", ""]);
  await requests.answer(modes("off", 900));
  const askedAt = async (at: number): Promise<number> => {
    Stream.newest.send("flows", { at, interval_s: 0.5, flows: [], more: 0 });
    Stream.newest.send("links", { at, interval_s: 0.25, links: [] });
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    changed("on", at);
    vi.advanceTimersByTime(1_000);
    vi.useRealTimers();
    await turn();
    return requests.open.length;
  };
  expect(await askedAt(1_000)).toBe(0);
  expect(requests.known).toMatchObject(modes("on", 1_000));
  expect(await askedAt(400)).toBe(1);
  await requests.answer(modes("on", 400));
  changed("off", 401);
  expect(requests.known).toMatchObject(modes("off", 401));
});

test("progress that came by the stream is not replaced by an answer of before it", async () => {
  requests = new Requests(queries, ["experiments", 5, "progress"]);
  await requests.answer({ at: 1, runs_done: 1 });
  void queries.invalidateQueries({ queryKey: ["experiments"] });
  await turn();
  const progress = { at: 3, runs_done: 3 };
  Stream.newest.send("experiments", {
    kind: "experiment-progress",
    cursor: 2,
    at: 3,
    experiment: 5,
    progress,
  });
  await requests.answer({ at: 2, runs_done: 2 });
  expect(requests.known).toEqual(progress);
});

test("a first answer that an event has overtaken is asked for again", async () => {
  requests = new Requests(queries, ["fabric", ""]);
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  Stream.newest.send("fabric", { kind: "link-down", cursor: 2, at: 2, link: "l1-s1" }, "a-2");
  vi.advanceTimersByTime(1_000);
  vi.useRealTimers();
  await requests.answer("of before");
  expect(requests.open.length).toBe(1);
  await requests.answer("of after");
  expect([requests.known, requests.open.length]).toEqual(["of after", 0]);
});

test("events that come faster than answers do not keep these from coming", async () => {
  requests = new Requests(queries, ["fabric", ""]);
  await requests.answer("first");
  for (let cursor = 2; cursor < 6; cursor += 1) {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    Stream.newest.send("fabric", { kind: "link-down", cursor, at: cursor, link: "l1-s1" }, `a-${cursor}`);
    vi.advanceTimersByTime(1_000);
    vi.useRealTimers();
    await turn();
  }
  expect(requests.open.length).toBe(1);
  await requests.answer("second");
  expect(requests.known).toBe("second");
  expect(requests.open.length).toBe(1);
});

test("after an action what is open is dropped where there is an answer, and repeated where there is none", async () => {
  requests = new Requests(queries, ["faults", ""]);
  void askAgain(queries, { queryKey: ["faults"] });
  await requests.answer("of before");
  expect(requests.open.length).toBe(1);
  void askAgain(queries, { queryKey: ["faults"] });
  await turn();
  expect(requests.open.length).toBe(2);
  await requests.answer("dropped");
  expect(requests.known).toBe("of before");
  await requests.answer("of after");
  expect(requests.known).toBe("of after");
});
