import { createElement } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ExperimentList } from "../src/experiments/ExperimentList";
import { ranS } from "../src/experiments/times";
import { dayTime } from "../src/parts/units";
import { drawn } from "./drawn";

beforeEach(() => vi.stubGlobal("window", { location: { pathname: "/compare", search: "" } }));
afterEach(() => vi.unstubAllGlobals());

test("an experiment that waits is said to be submitted, not to have begun", async () => {
  const waits = {
    id: 7,
    name: "small",
    state: "queued",
    created_at: 1e9,
    started_at: null,
    finished_at: null,
  };
  const pages = { pages: [{ experiments: [waits], next: null }], pageParams: [null] };
  const html = await drawn(createElement(ExperimentList), [[["experiments", "list"], pages]]);
  const heads = [...html.matchAll(/<th[^>]*scope="col"[^>]*>([^<]*)</g)].map(([, head]) => head);
  const cells = [...html.matchAll(/<td[^>]*>(?:<span[^>]*>)?([^<]*)/g)].map(([, cell]) => cell);
  expect(heads).toEqual(["experiment", "state", "submitted", "took"]);
  expect(cells).toEqual(["◌ queued", dayTime(1e9), "–"]);
});

test("what was cancelled in the queue has run for no time", () => {
  const times = { created_at: 100, started_at: null, finished_at: 700 };
  expect(ranS({ ...times, kind: "experiment" })).toBeNull();
  expect(ranS({ ...times, kind: "sweep", started_at: 400 })).toBe(300);
  expect(ranS({ ...times, kind: "recorded" })).toBe(600);
  expect(ranS({ ...times, kind: "experiment", started_at: 400, finished_at: null })).toBeNull();
});
