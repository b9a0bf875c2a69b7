import { createElement, type ReactElement } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Header } from "../src/app/Header";
import { fabricEveryMs } from "../src/api/queries";
import type { RunView } from "../src/api/schema";
import { CaptonPanels } from "../src/capton/CaptonPanels";
import { FlowsPage } from "../src/flows/FlowsPage";
import { LiveStage } from "../src/tour/LiveStage";
import { RoleContext } from "../src/app/role";
import { FieldChanges } from "../src/experiments/FieldChanges";
import { RunLive } from "../src/tour/RunLive";
import { type Connection, LiveStore } from "../src/live/store";
import { LiveContext } from "../src/live/useLive";
import { TpfsPanels } from "../src/tpfs/TpfsPanels";
import { RunStream, WatchSource } from "../src/watch/WatchSource";
import { type Answers, drawn } from "./drawn";

const RUN = "/runs/current";
const paths = Object.fromEntries(
  ["/specs", "/capton", RUN, `${RUN}/capton`].map((path) => [`/api/v1${path}`, {}]),
);
const ELSEWHERE: RunView = { experiment: 7, parent: null, here: false };
const HERE: RunView = { experiment: 7, parent: null, here: true };
const NO_RUN: RunView = { experiment: null, parent: null, here: false };
const health = { scheme: "caps", switches: 0, ready: false, reasons: ["no switch has connected"] };

const shown = (page: ReactElement, run: RunView, answers: Answers = []): Promise<string> =>
  drawn(page, [[["openapi"], { paths }], [["run"], run], ...answers]);

const textOf = (html: string): string => html.replaceAll(/<[^>]+>/g, "");

beforeEach(() => vi.stubGlobal("window", { location: { pathname: "/", search: "" } }));
afterEach(() => vi.unstubAllGlobals());

test("the header names the run that is followed, and the scheme on its fabric", async () => {
  const header = createElement(Header, { place: null, help: () => undefined });
  const answers: Answers = [
    [["health"], health],
    [["scheme", RUN], { scheme: { name: "letflow" } }],
  ];
  const followed = await shown(header, ELSEWHERE, answers);
  expect(textOf(followed)).toContain("experiment 7: ");
  expect(followed).toContain('data-scheme="letflow"');
  expect(followed).not.toContain(">no fabric<");
  expect(await shown(header, NO_RUN, answers)).toContain(">no fabric<");
});

test("on this controller's own fabric it names the run beside the scheme in force", async () => {
  const header = createElement(Header, { place: null, help: () => undefined });
  const html = await shown(header, HERE, [
    [["health"], { ...health, switches: 6, ready: true, reasons: [] }],
    [["scheme", ""], { scheme: { name: "caps" } }],
  ]);
  expect(textOf(html)).toContain("experiment 7: ");
  expect(html).toContain('data-scheme="caps"');
});

test.each([
  ["types of flows", TpfsPanels, "tpfs"],
  ["grants", CaptonPanels, "capton"],
  ["flows", FlowsPage, "flows"],
])("%s are those of the run that is followed, which is named", async (_, panels, name) => {
  // An answer that failed shows which controller was asked.
  const answers: Answers = [
    [[name, ""], new Error("of the own fabric")],
    [[name, RUN], new Error("of the run")],
  ];
  const followed = await shown(createElement(panels), ELSEWHERE, answers);
  expect(followed).toContain("of the run");
  expect(followed).toContain("experiment 7</a>, live");
  for (const run of [HERE, NO_RUN])
    expect(await shown(createElement(panels), run, answers)).toContain("of the own fabric");
});

test("a run whose own stream is not there is said not to be of now, and its fabric is asked for", async () => {
  const said = async (connection: Connection): Promise<string> => {
    const store = new LiveStore();
    store.setConnection(connection);
    return textOf(await drawn(createElement(LiveContext, { value: store }, createElement(RunStream))));
  };
  expect(await said("lost")).toContain("This run: ○ connection lost; trying again");
  expect(await said("old")).toContain("This run: ◐ no updates");
  expect(await said("live")).not.toContain("This run");
  expect(fabricEveryMs("lost")).toBeLessThan(10_000);
  expect(fabricEveryMs("live")).toBeUndefined();
});

test("views of a run that are below each other share its stream", async () => {
  const view = createElement(WatchSource, null, "of the run");
  const html = await shown(createElement(WatchSource, null, view), ELSEWHERE);
  expect(html).toContain("of the run");
  expect(html.match(/role="status"/g)).toHaveLength(1); // each stream says there when it is late
});

test("a tour whose address names an experiment that is not there leads back to the recording", async () => {
  const stage = createElement(LiveStage, { experiment: 17, leave: () => undefined });
  const html = await shown(stage, NO_RUN, [[["experiments", 17], new Error("no experiment 17")]]);
  expect(html).toContain("no experiment 17");
  expect(html).toContain("Back to the recording");
});

test("a step is begun only once it is known whether labs or simulations are run", async () => {
  const button = createElement(RunLive, { scheme: "ecmp", watch: () => undefined });
  const page = createElement(RoleContext, { value: "operate" }, button);
  expect(await shown(page, NO_RUN)).not.toContain("<button");
  const engine = { workers: 0, simulation_workers: 2, running: [], queued: [] };
  expect(await shown(page, NO_RUN, [[["engine"], engine]])).toContain("Simulate ECMP yourself");
});

test("a value that a field does not have is shown, as it is sent", async () => {
  const field = { field: "fabric.topology", kind: "", description: "", choices: ["leaf-spine", "fat-tree"] };
  const changes = [{ field: field.field, value: "10" }];
  const form = createElement(FieldChanges, { changes, fields: [field], edit: String, wrong: () => true });
  expect(await shown(form, NO_RUN)).toMatch(/<option value="10" selected="">/);
});
