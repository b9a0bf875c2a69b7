import { createElement } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { MOST_FLOWS } from "../src/experiments/queries";
import { Results } from "../src/experiments/Results";
import type { Experiment } from "../src/experiments/types";
import { OperatePage } from "../src/operate/OperatePage";
import { NoFabric } from "../src/watch/NoFabric";
import { type Answers, drawn } from "./drawn";

const engine = {
  executor: "local",
  address: null,
  workers: 0,
  simulation_workers: 2,
  running: [3],
  queued: [],
  paused: null,
};
const health = {
  scheme: "ecmp",
  switches: 0,
  links: 0,
  hosts: 0,
  agents: 0,
  ready: false,
  reasons: ["no switch is connected"],
  version: "1",
  uptime_s: 1,
};
const simulation = {
  id: 3,
  name: "small",
  title: "A quick look",
  simulated: true,
  state: "running",
  progress: {
    runs_done: 1,
    runs: 4,
    flows: 0,
    flows_failed: 0,
    left_s: null,
    queue_position: null,
    stage: "",
  },
};
const KNOWN: Answers = [
  [["openapi"], { paths: { "/api/v1/specs": {} } }],
  [["engine"], engine],
  [["health"], health],
  [["fabric", ""], { switches: [], links: [], hosts: [], scheme: "ecmp", settled: true }],
  [["scheme", ""], { base: "ecmp", overrides: {}, version: 1, scheme: { name: "ecmp" } }],
  [["faults", ""], { possible: false, faults: [] }],
  [["agents"], { agents: [] }],
  [["experiments", 3], simulation],
];

beforeEach(() => vi.stubGlobal("window", { location: { pathname: "/", search: "" } }));
afterEach(() => vi.unstubAllGlobals());

test("without a fabric Operate says so, offers nothing and calls no scheme in force", async () => {
  const html = await drawn(createElement(OperatePage), KNOWN);
  expect(html).toContain("There is no fabric to operate");
  for (const words of ["Switch to it", "in force", "In force", "plain ECMP", "<form", "Do it"])
    expect(html.toLowerCase()).not.toContain(words.toLowerCase());
});

test("workers are counted by what they run", async () => {
  const html = await drawn(createElement(OperatePage), KNOWN);
  expect(html).toContain("0 workers for labs, 2 workers for simulations");
});

test("without a fabric Watch names the simulation that runs, and leads to it", async () => {
  const html = await drawn(createElement(NoFabric), KNOWN);
  expect(html).toContain("A simulation runs: A quick look");
  expect(html).toContain('href="/compare/3"');
  expect(html).toContain("run 2 of 4");
  expect(html).toContain("Play again");
  const lab: Answers = KNOWN.map((known) =>
    known[1] === simulation ? [known[0], { ...simulation, simulated: false }] : known,
  );
  expect(await drawn(createElement(NoFabric), lab)).not.toContain("A simulation runs");
});

test("without a fabric Watch has the completion times of a simulation's runs that are over", async () => {
  const runs = [1, 2].map((id) => ({ id, label: id === 1 ? "ecmp" : "caps" }));
  const records = runs.map(({ id }) => ({ id, run_id: id, traffic_class: "short", fct_s: 0.1 * id }));
  const answers: Answers = [
    ...KNOWN.filter(([key]) => key[0] !== "experiments"),
    [["experiments", 3], { ...simulation, summary: null, runs }],
    [["flow-records", 3, 2], records],
  ];
  await drawn(createElement(NoFabric), answers); // asks for the chart's code
  await vi.dynamicImportSettled();
  const html = await drawn(createElement(NoFabric), answers);
  expect(html).toContain("Completion times of short flows: 2 runs so far");
  expect(html).toContain('data-curves="2"');
  expect(await drawn(createElement(NoFabric), KNOWN)).not.toContain("so far");
});

test("what can be begun without a fabric is of the kinds that the queue runs", async () => {
  expect(await drawn(createElement(NoFabric), KNOWN)).toContain("Begin a simulation");
  const none = KNOWN.map((known) =>
    known[1] === KNOWN[0]?.[1] ? ([known[0], { paths: {} }] as const) : known,
  );
  expect(await drawn(createElement(NoFabric), none)).not.toContain("Begin a");
});

test("while an experiment goes on, its page has the completion times of runs that are over", async () => {
  const runs = [1, 2].map((id) => ({ id, label: id === 1 ? "ecmp" : "caps" }));
  const experiment = { ...simulation, summary: null, runs } as unknown as Experiment;
  const records = runs.map(({ id }) => ({ id, run_id: id, traffic_class: "short", fct_s: 0.1 * id }));
  const answers: Answers = [...KNOWN, [["flow-records", 3, 2], records]];
  const html = await drawn(createElement(Results, { experiment }), answers);
  expect(html).toContain("Completion times of short flows: 2 runs so far");
  expect(html).toContain('data-curves="2"');
  expect(html).not.toContain("Drawn of the first");
});

test("curves of a part of an experiment's flows say so", async () => {
  const experiment = { ...simulation, summary: null, runs: [{ id: 1, label: "ecmp" }] };
  const one = { id: 1, run_id: 1, traffic_class: "short", fct_s: 0.1 };
  const records = Array.from({ length: MOST_FLOWS }, () => one);
  const page = createElement(Results, { experiment: experiment as unknown as Experiment });
  const html = await drawn(page, [...KNOWN, [["flow-records", 3, 1], records]]);
  expect(html).toContain("Drawn of the first 20,000 flows");
});

test("a result of runs during which a part of the lab ended says so, and marks the scheme", async () => {
  const figures = { retransmissions: 0, recovered_packets: 0, overhead: 0, cpu_limited: false };
  const ecmp = { scheme: "ecmp", ...figures, disturbed: true };
  const summary = { disturbed: true, schemes: { ecmp, rps: { scheme: "rps", ...figures } } };
  const experiment = { ...simulation, state: "finished", summary, runs: [] } as unknown as Experiment;
  const html = await drawn(createElement(Results, { experiment }), KNOWN);
  expect(html).toContain("* A part of the lab ended during these runs");
  expect(html).not.toContain("The processor limited");
  const [, rows] = /<tbody[^>]*>(.*)<\/tbody>/s.exec(html) ?? [];
  expect(rows?.replaceAll(/<[^>]+>/g, "").match(/ \*/g)).toEqual([" *"]);
});

test("a class none of whose flows crossed the fabric has no number of paths", async () => {
  const figures = { retransmissions: 0, recovered_packets: 0, overhead: 0, cpu_limited: false };
  const paths = { short: { paths_per_flow: 3.72 }, long: { paths_per_flow: null } };
  const summary = { schemes: { ecmp: { scheme: "ecmp", ...figures, paths } } };
  const experiment = { ...simulation, state: "finished", summary, runs: [] } as unknown as Experiment;
  const html = await drawn(createElement(Results, { experiment }), KNOWN);
  const [, row] = /<tbody[^>]*>(.*)<\/tbody>/s.exec(html) ?? [];
  expect(row?.match(/3\.7|–/g)).toEqual(["–", "–", "–", "3.7", "–"]);
});
