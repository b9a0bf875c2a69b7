import { createElement } from "react";
import { expect, test, vi } from "vitest";
import type { SimulatedRunView } from "../src/api/schema";
import { LinkLoads } from "../src/fabric/LinkPanel";
import { LiveStore } from "../src/live/store";
import { LiveContext } from "../src/live/useLive";
import { NoFabric } from "../src/watch/NoFabric";
import { SimulatedRun } from "../src/watch/SimulatedRun";
import { type Answers, drawn } from "./drawn";

const load = (share: number) => ({
  bits_per_s: share * 1e7,
  packets_per_s: 800 * share,
  share,
  queued_packets: 3,
  dropped_per_s: 0,
  queues: [],
});
const ends = (leaf: string) => ({ a: { switch: leaf, port: 1 }, b: { switch: "s1", port: 1 } });
const switchView = (name: string, tier: number) => ({
  name,
  dpid: name,
  connected: true,
  tier,
  role: tier === 0 ? ("leaf" as const) : ("spine" as const),
  stamp: 0,
});
const run: SimulatedRunView = {
  experiment: 4,
  scheme: "caps",
  repeat: 2,
  at_s: 1.86,
  fabric: {
    switches: [switchView("l1", 0), switchView("l2", 0), switchView("s1", 1)],
    links: ["l1", "l2"].map((leaf) => ({
      name: `${leaf}-s1`,
      kind: "fabric" as const,
      ...ends(leaf),
      up: true,
      speed_kbps: 0,
      rate_kbps: 10_000,
    })),
    hosts: [],
    scheme: "caps",
    settled: true,
  },
  loads: {
    at: 100,
    interval_s: 0.25,
    links: ["l1", "l2"].map((leaf) => ({
      name: `${leaf}-s1`,
      kind: "fabric" as const,
      up: true,
      rate_kbps: 10_000,
      ab: load(0.5),
      ba: load(0),
    })),
  },
};

test("a simulation that runs shows its fabric, and of which moment what links carry is", async () => {
  const html = await drawn(createElement(SimulatedRun, { experiment: 3 }), [[["simulated run", 3], run]]);
  expect(html).toContain("Fabric under caps, repeat 2");
  expect(html).toContain("At 1.86 s of the run’s time; loads are means of the 250 ms before.");
  expect(html).toContain('data-link="l2-s1"');
  expect(html).toContain("Fabric of 3 switches, 2 links and 0 hosts");
});

test("nothing shows before the first sample, and after the run", async () => {
  expect(
    await drawn(createElement(SimulatedRun, { experiment: 3 }), [[["simulated run", 3], null]]),
  ).not.toContain("Fabric");
  expect(await drawn(createElement(SimulatedRun, { experiment: 3 }))).not.toContain("Fabric");
});

test("a link of a simulation has its loads and no switch for taking it down", async () => {
  const store = new LiveStore();
  store.takeLinks(run.loads);
  const panel = createElement(LinkLoads, { name: "l1-s1", close: () => undefined, fabric: run.fabric });
  const html = await drawn(createElement(LiveContext, { value: store }, panel));
  expect(html).toContain("Link l1-s1");
  expect(html).toContain("5.00 Mbit/s");
  expect(html).toContain("carries 10.0 Mbit/s each way");
  expect(html).not.toContain("Take the link down");
});

test("Watch without switches shows the fabric of the simulation that runs", async () => {
  vi.stubGlobal("window", { location: { pathname: "/", search: "" } });
  const engine = { workers: 0, simulation_workers: 1, running: [3], queued: [], paused: null };
  const simulation = { id: 3, name: "small", title: "A quick look", simulated: true, state: "running" };
  const answers: Answers = [
    [["openapi"], { paths: { "/api/v1/specs": {} } }],
    [["engine"], { executor: "local", address: null, ...engine }],
    [["experiments", 3], { ...simulation, progress: null, summary: null, runs: [] }],
    [["simulated run", 3], run],
  ];
  await drawn(createElement(NoFabric), answers); // asks for its code
  await vi.dynamicImportSettled();
  expect(await drawn(createElement(NoFabric), answers)).toContain("Fabric under caps, repeat 2");
  vi.unstubAllGlobals();
});
