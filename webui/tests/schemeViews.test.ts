import { createElement } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { SchemeControls } from "../src/control/SchemeControls";
import { ExperimentForm } from "../src/experiments/ExperimentForm";
import { NewExperiment } from "../src/experiments/NewExperiment";
import { SchemeChoice } from "../src/experiments/SchemeChoice";
import { Evidence } from "../src/understand/Evidence";
import { UnderstandPage } from "../src/understand/UnderstandPage";
import { type Answers, drawn } from "./drawn";
import { scheme } from "./scheme";

const at = (pathname: string, search = "") => vi.stubGlobal("window", { location: { pathname, search } });
afterEach(() => vi.unstubAllGlobals());

const inForce = (name: string): Answers => [
  [["schemes"], { schemes: [scheme, { ...scheme, name: "rps" }] }],
  [["scheme", ""], { scheme: { ...scheme, name }, base: name, overrides: {}, packet_time_us: 1, version: 1 }],
];

test("a scheme from a file is chosen while it is in force, and not the first of the list", async () => {
  at("/operate");
  const page = createElement(SchemeControls, { may: true });
  expect(await drawn(page, inForce("rps"))).toMatch(/<option value="rps" selected="">/);
  const html = await drawn(page, inForce("mine"));
  expect(html).toMatch(/<option value="mine" selected="">mine: from a file</);
  expect(html).toMatch(
    /<button[^>]* disabled=""[^>]*type="submit"|<button[^>]*type="submit"[^>]* disabled=""/,
  );
});

test("an address of a scheme that is not there shows no other scheme", async () => {
  at("/understand/rps");
  const page = createElement(UnderstandPage);
  expect(await drawn(page, inForce("ecmp"))).toContain("rps: ");
  at("/understand/nowhere");
  const html = await drawn(page, inForce("ecmp"));
  expect(html).toContain("There is no scheme nowhere");
  expect(html).not.toContain('aria-current="page"');
});

test("what is not known yet is asked for in words, and no scheme is shown in its place", async () => {
  at("/understand");
  const [schemes] = inForce("rps");
  const html = await drawn(createElement(UnderstandPage), [schemes!]);
  expect(html).toContain("Asking for the scheme in force");
  expect(html).not.toContain('aria-current="page"');
  expect(await drawn(createElement(UnderstandPage), inForce("rps"))).toContain("rps: ");
  for (const panel of [createElement(NewExperiment), createElement(Evidence, { scheme: "caps" })])
    expect(await drawn(panel)).toContain("Asking for what this controller");
});

test("a list of schemes that does not come is said to be missing", async () => {
  at("/operate");
  const [, scheme] = inForce("rps");
  const answers: Answers = [scheme!, [["schemes"], new Error("the controller does not answer")]];
  const html = await drawn(createElement(SchemeControls, { may: true }), answers);
  expect(html).toContain("There is no list of schemes: the controller does not answer");
});

test("a scheme for simulations alone can be chosen for a simulation, and not for a lab", async () => {
  const pfabric = { initial_window: 8, largest_window: 16, timeout_packet_times: 30, buffer_bytes: 36_000 };
  const schemes = { schemes: [scheme, { ...scheme, name: "pfabric", pfabric }] };
  const option = async (kind: "lab" | "simulation"): Promise<string | undefined> => {
    const choice = createElement(SchemeChoice, { kind, usual: ["ecmp"], chosen: ["ecmp"], choose: String });
    const html = await drawn(choice, [[["schemes"], schemes]]);
    return /<option[^>]*value="pfabric"[^>]*>/.exec(html)?.[0];
  };
  expect(await option("simulation")).not.toContain("disabled");
  expect(await option("lab")).toContain("disabled");
});

test("an address of a preset that is not there says so beside the form", async () => {
  const small = { name: "small", title: "", description: "", schemes: ["ecmp"], points: 0, runs: 1 };
  const presets = [{ ...small, estimated_s: 1, claims: [], text: "" }];
  const form = createElement(ExperimentForm, { presets });
  at("/compare", "?preset=nowhere");
  expect(await drawn(form)).toContain("There is no preset nowhere here");
  for (const search of ["?preset=small", ""]) {
    at("/compare", search);
    expect(await drawn(form)).not.toContain("There is no preset");
  }
});
