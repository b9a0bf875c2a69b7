import { createElement } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PlayAgain } from "../src/experiments/PlayAgain";
import type { Experiment } from "../src/experiments/types";
import { SchemeView } from "../src/understand/SchemeView";
import { type Answers, drawn } from "./drawn";
import { scheme } from "./scheme";

beforeEach(() => vi.stubGlobal("window", { location: { pathname: "/", search: "" } }));
afterEach(() => vi.unstubAllGlobals());

const recording = { from_ms: 180, for_ms: 411.6, hops: 9, cut: false };
const run = { label: "ecmp", repeat: 0, recording: null as typeof recording | null };
const onSwitches = {
  id: 7,
  state: "finished",
  simulated: false,
  record: null,
  summary: { schemes: { ecmp: {}, caps: {} }, notices: [] as string[] },
  runs: [run, { ...run, label: "caps" }, { ...run, repeat: 1 }],
};
/** What is drawn for an experiment, without Mantine's styles. */
async function shown(more: object): Promise<string> {
  const experiment = { ...onSwitches, ...more } as unknown as Experiment;
  const html = await drawn(createElement(PlayAgain, { experiment }));
  return html.replaceAll(/<style.*?<\/style>/gs, "");
}

test("of runs on switches those that were recorded are played, in the window that was", async () => {
  const html = await shown({ runs: [run, { ...run, label: "caps", recording }], state: "running" });
  expect(html).toContain('href="/watch/replay?experiment=7&amp;scheme=caps"');
  expect(html).toContain("(412 ms from 180 ms on)");
  expect(html).not.toContain("scheme=ecmp");
  expect(html).not.toContain("<input");
  expect(await shown({ runs: [{ ...run, recording: { ...recording, cut: true } }] })).toContain("was full");
});

test("where they were not recorded the page says so, and what to do", async () => {
  expect(await shown({})).toContain("Begin it again with “Record packets”");
  expect(await shown({ state: "running" })).toBe("");
  expect(await shown({ runs: [] })).toBe("");
});

test("where they could not be recorded the page says why", async () => {
  const notices = [
    "run 1 of ecmp was not recorded packet by packet: the run was over before 900 ms",
    "other",
  ];
  const html = await shown({ record: { from_ms: 900, for_ms: 1 }, summary: { notices } });
  expect(html).toContain("the run was over before 900 ms");
  expect(html).not.toContain("other");
  expect(html).not.toContain("Begin it again");
});

test("a finished simulation is played in the window that is chosen", async () => {
  const html = await shown({ simulated: true });
  expect(html).toContain('href="/watch/replay?experiment=7&amp;scheme=caps&amp;from=0&amp;for=1000"');
  expect(html.match(/<input/g)).toHaveLength(2);
  expect(await shown({ simulated: true, state: "running" })).toBe("");
});

test("a scheme is switched to where there is a fabric, and nothing is in force without one", async () => {
  const fabric = (switches: object[]): Answers => [
    [["fabric", ""], { switches, links: [], hosts: [] }],
    [["scheme", ""], { base: "ecmp", scheme: { name: "ecmp" } }],
  ];
  const of = (name: string, switches: object[]): Promise<string> =>
    drawn(createElement(SchemeView, { scheme: { ...scheme, name } }), fabric(switches));
  expect(await of("caps", [{}])).toContain("Switch to it in Operate");
  expect(await of("ecmp", [{}])).toContain("in force on this fabric");
  for (const name of ["caps", "ecmp"]) {
    const html = await of(name, []);
    expect(html).toContain("No switch has connected to this controller");
    expect(html.replaceAll(/<[^>]*>/g, "")).toContain(`./capstan lab small --scheme ${name}`);
    expect(html).not.toContain("Switch to it");
    expect(html).not.toContain("in force");
  }
});
