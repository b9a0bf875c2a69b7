import { expect, test } from "vitest";
import type { LiveFlow } from "../src/api/schema";
import type { FlowsSample, LinksSample } from "../src/api/types";
import { FlowHistory, KEPT_FLOWS } from "../src/live/flowHistory";
import { KEPT_S, LinkHistory } from "../src/live/linkHistory";
import { flow } from "./flow";

const load = (bits: number) => ({
  bits_per_s: bits,
  packets_per_s: 0,
  share: null,
  queued_packets: null,
  dropped_per_s: null,
  queues: [],
});

const links = (at: number, names: string[]): LinksSample => ({
  at,
  interval_s: 0.25,
  links: names.map((name) => ({ name, kind: "fabric", up: true, rate_kbps: 1000, ab: load(at), ba: null })),
});

const flows = (at: number, sent: LiveFlow[]): FlowsSample => ({ at, interval_s: 0.5, flows: sent, more: 0 });

test("a link's history is of the last minute, and takes nothing twice", () => {
  const history = new LinkHistory();
  for (let step = 0; step < 400; step += 1) history.take(links(step * 0.25, ["l1-s1"]));
  history.take(links(399 * 0.25, ["l1-s1"]));
  const points = history.of("l1-s1");
  expect(points.length).toBe(KEPT_S / 0.25 + 1);
  expect(points.at(-1)?.at).toBe(99.75);
  expect(points[0]?.at).toBe(99.75 - KEPT_S);
});

test("samples of a simulated run are at its times, and kept for a minute of the page's", () => {
  const history = new LinkHistory();
  for (let step = 0; step <= 400; step += 1) history.take(links(step * 0.25, ["l1-s1"]), step * 400);
  const points = history.of("l1-s1");
  expect(points.length).toBe(KEPT_S / 0.25 + 1);
  expect([points[0]?.at, points.at(-1)?.at]).toEqual([160 * 400, 400 * 400]);
});

test("after a clock was set back, histories begin anew with what is sampled then", () => {
  const ofLinks = new LinkHistory();
  const ofFlows = new FlowHistory();
  for (const at of [100, 40]) ofLinks.take(links(at, ["l1-s1"]));
  expect(ofLinks.of("l1-s1").map(({ at }) => at)).toEqual([40]);
  ofFlows.take(flows(100, [flow(7)]));
  ofFlows.take(flows(40, [flow(8)]));
  expect(ofFlows.recent(10).map((trace) => trace.flow.id)).toEqual([8]);
});

test("a link that is reported no more is forgotten", () => {
  const history = new LinkHistory();
  history.take(links(1, ["l1-s1", "l1-s2"]));
  history.take(links(2, ["l1-s2"]));
  expect(history.of("l1-s1")).toEqual([]);
  expect(history.of("l1-s2").length).toBe(2);
});

test("a sample of flows is taken once", () => {
  const history = new FlowHistory();
  for (const at of [1, 2, 2]) history.take(flows(at, [flow(7)]));
  expect(history.recent(10)[0]?.moments.map(({ at }) => at)).toEqual([1, 2]);
});

test("flows without updates are left out, and beyond the limit the quietest is forgotten", () => {
  const history = new FlowHistory();
  history.take(flows(1, [flow(0)]));
  history.take(
    flows(
      20,
      Array.from({ length: KEPT_FLOWS }, (_, index) => flow(index + 1)),
    ),
  );
  expect(history.recent(60).at(-1)?.flow.id).toBe(1);
  history.take(flows(40, [flow(3)]));
  expect(history.recent(10).map((trace) => trace.flow.id)).toEqual([3]);
});
