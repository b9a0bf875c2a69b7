import { createElement } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LinksSample } from "../src/api/types";
import { LiveStore } from "../src/live/store";
import { LiveContext } from "../src/live/useLive";
import { FctPage } from "../src/fct/FctPage";
import { FlowsPage } from "../src/flows/FlowsPage";
import { PathsPage } from "../src/paths/PathsPage";
import { Queues } from "../src/queues/QueuesPage";
import { type Answers, drawn } from "./drawn";
import { flow } from "./flow";

const refused = new Error("the controller does not answer");
const NO_QUEUES = "No port reports its queues";
const NO_FLOWS = "No flow has been seen";

beforeEach(() => vi.stubGlobal("window", { location: { pathname: "/", search: "" } }));
afterEach(() => vi.unstubAllGlobals());

test("ports are not said to report no queues before an answer says so", async () => {
  const page = createElement(Queues);
  expect(await drawn(page)).not.toContain(NO_QUEUES);
  const failed = await drawn(page, [[["queues", ""], refused]]);
  expect(failed).toContain(refused.message);
  expect(failed).not.toContain(NO_QUEUES);
  const none = { wanted: { number: 1, buffer_packets: null }, switches: [] };
  expect(await drawn(page, [[["queues", ""], none]])).toContain(NO_QUEUES);
});

test("flows are not said to be none where the list failed", async () => {
  const page = createElement(FlowsPage);
  const failed = await drawn(page, [[["flows", ""], refused]]);
  expect(failed).toContain(refused.message);
  expect(failed).not.toContain(NO_FLOWS);
  expect(await drawn(page, [[["flows", ""], { flows: [] }]])).toContain(NO_FLOWS);
});

test("traffic is suggested between hosts that every lab has, to a server that is started first", async () => {
  const fabric = { switches: [], links: [], hosts: [], scheme: "caps", settled: true };
  const html = await drawn(createElement(PathsPage), [[["fabric", ""], fabric]]);
  const server = html.indexOf("./capstan exec h3 -- iperf3 -s -D");
  expect(server).toBeGreaterThan(0);
  expect(html.indexOf("./capstan exec h1 -- iperf3 -c h3")).toBeGreaterThan(server);
});

test("no flow counts for the scheme in force before it is known when that was changed", async () => {
  const ended = flow(1, { state: "ended", started_at: 10, last_at: 12 });
  const known: Answers = [
    [["flows", ""], { flows: [ended], whole: true }],
    [["scheme", ""], { scheme: { name: "caps" }, base: "caps", version: 3 }],
  ];
  const page = createElement(FctPage);
  const underCaps = 'data-scheme="caps"';
  expect(await drawn(page, known)).not.toContain(underCaps);
  const failed = await drawn(page, [...known, [["events", "", "caps", 3], refused]]);
  expect(failed).not.toContain(underCaps);
  expect(failed).toContain(refused.message);
  expect(failed).not.toContain("No flow has ended yet");
  const changed = { events: [{ cursor: 1, at: 11, kind: "scheme-changed", scheme: "caps" }], since: 0 };
  expect(await drawn(page, [...known, [["events", "", "caps", 3], changed]])).not.toContain(underCaps);
  const none = { events: [], since: 0 };
  expect(await drawn(page, [...known, [["events", "", "caps", 3], none]])).toContain(underCaps);
  const cut = { events: [], since: 11 };
  expect(await drawn(page, [...known, [["events", "", "caps", 3], cut]])).not.toContain(underCaps);
});

test("a port leads to its link, whatever that is called", async () => {
  const store = new LiveStore();
  const queues = [{ queue: 0, waiting_packets: 3, bits_per_s: 0, dropped_per_s: 0 }];
  const load = { bits_per_s: 0, packets_per_s: 0, share: null, queued_packets: 3, dropped_per_s: 0, queues };
  const link = { name: "rack#1&2-s+1", kind: "fabric" as const, up: true, rate_kbps: 1, ab: load, ba: null };
  store.takeLinks({ at: 1, interval_s: 1, links: [link] } satisfies LinksSample);
  const html = await drawn(createElement(LiveContext, { value: store }, createElement(Queues)));
  const href = /href="([^"]*)"/.exec(html)?.[1] ?? "";
  expect(new URL(href, "http://localhost").searchParams.get("link")).toBe("rack#1&2-s+1");
});

test("of two thousand ports those that are fullest are drawn with each sample, all when they are asked for", async () => {
  const store = new LiveStore();
  const load = (packets: number) => {
    const queues = [{ queue: 0, waiting_packets: packets, bits_per_s: 0, dropped_per_s: 0 }];
    return {
      bits_per_s: 0,
      packets_per_s: 0,
      share: null,
      queued_packets: packets,
      dropped_per_s: 0,
      queues,
    };
  };
  const links = Array.from({ length: 1000 }, (_, index) => ({
    name: `l${index}-s1`,
    kind: "fabric" as const,
    up: true,
    rate_kbps: 1,
    ab: load(index),
    ba: load(0),
  }));
  store.takeLinks({ at: 1, interval_s: 1, links });
  const html = await drawn(createElement(LiveContext, { value: store }, createElement(Queues)));
  expect(html.match(/<tr/g)?.length).toBeLessThan(150);
  expect(html).toContain("l999 → s1");
  expect(html).toContain("Show all 2,000 rows");
});
