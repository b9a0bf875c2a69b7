import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { measures } from "../src/experiments/bars";
import { RefusedError } from "../src/api/client";
import { about, fieldOf, lineOf, verdictOf } from "../src/experiments/problems";
import { roughly } from "../src/experiments/roughly";
import { schemaFields } from "../src/experiments/schemaFields";
import {
  type Draft,
  hasChangesForPreset,
  type Kind,
  kindsOf,
  submission,
  typed,
  untouched,
} from "../src/experiments/submission";

const draft: Draft = untouched("small");
const LABS: Kind[] = ["lab", "simulation"];

test("without a worker for labs all is simulated, else what was chosen", () => {
  expect(kindsOf(undefined)).toEqual(["lab"]);
  expect(kindsOf({ workers: 1, simulation_workers: 0 })).toEqual(["lab"]);
  expect(kindsOf({ workers: 1, simulation_workers: 2 })).toEqual(LABS);
  const alone = kindsOf({ workers: 0, simulation_workers: 2 });
  expect(submission(draft, alone)).toEqual({ preset: "small", kind: "simulation" });
  expect(submission({ ...draft, text: "name: x" }, alone)).toEqual({ text: "name: x", kind: "simulation" });
  expect(submission({ ...draft, kind: "simulation" }, LABS)["kind"]).toBe("simulation");
  expect(submission({ ...draft, kind: "lab" }, LABS)["kind"]).toBeUndefined();
  expect(submission({ ...draft, kind: "lab" }, alone)["kind"]).toBe("simulation"); // its workers have left since
});

test("a window to record is sent with what runs on switches, and no empty field with it", () => {
  const record = { from: "", length: 1000 };
  expect(submission({ ...draft, record }, LABS)).toEqual({ preset: "small", record: { for_ms: 1000 } });
  const text = { ...draft, text: "name: x", record: { from: 400, length: "" } };
  expect(submission(text, LABS)).toEqual({ text: "name: x", record: { from_ms: 400 } });
  expect(submission({ ...draft, record, kind: "simulation" }, LABS)).not.toHaveProperty("record");
  expect(submission({ ...draft, record }, ["simulation"])).not.toHaveProperty("record");
});

test("what was not changed is not sent", () => {
  expect(submission(draft, LABS)).toEqual({ preset: "small" });
  expect(submission({ ...draft, seed: "0", repeats: "2", schemes: ["caps"] }, LABS)).toEqual({
    preset: "small",
    seed: 0,
    repeats: 2,
    schemes: ["caps"],
  });
});

test("fields are sent dotted, with the types that were meant", () => {
  const changes = [
    { field: "workload.flows.count", value: " 10 " },
    { field: "transport.profile", value: "ns2" },
    { field: "", value: "1" },
    { field: "x", value: "" },
  ];
  expect(submission({ ...draft, changes }, LABS)["set"]).toEqual({
    "workload.flows.count": 10,
    "transport.profile": "ns2",
  });
  expect(["true", "null", "1e3", "[1, 2]", "[1", "abc"].map(typed)).toEqual([
    true,
    null,
    1000,
    [1, 2],
    "[1",
    "abc",
  ]);
});

test("a load takes the place of the preset's rate of arrivals, and a sweep's values are a list", () => {
  const load = "workload.flows.arrivals.load";
  const rate = "workload.flows.arrivals.rate_per_s";
  expect(submission({ ...draft, load: "0.4" }, LABS)["set"]).toEqual({ [load]: 0.4, [rate]: null });
  const axes = [
    { field: load, values: "0.2, 0.4," },
    { field: "fabric.spines", values: "4,8" },
    { field: "", values: "1" },
    { field: "seed", values: " " },
  ];
  expect(submission({ ...draft, load: "0.9", axes }, LABS)).toEqual({
    preset: "small",
    set: { [load]: 0.2, [rate]: null },
    sweep: { [load]: [0.2, 0.4], "fabric.spines": [4, 8] },
  });
});

test("fields that end alike are swept, and a field that is given twice is left to the controller to refuse", () => {
  const sweep = (...fields: string[]): unknown =>
    submission({ ...draft, axes: fields.map((field, index) => ({ field, values: `${index}` })) }, LABS)[
      "sweep"
    ];
  const [links, hosts] = ["fabric.link.rate_mbps", "fabric.access.rate_mbps"] as const;
  expect(sweep(links, hosts)).toEqual({ [links]: [0], [hosts]: [1] });
  expect(sweep(links, links)).toEqual([
    { label: links, fields: [links], values: [0] },
    { label: links, fields: [links], values: [1] },
  ]);
});

test("a problem is shown at its field and at its line", () => {
  const at = (field: string, line?: number) => ({ field, message: "", line: line ?? null, column: null });
  expect(
    ["body.preset.a.b", "body.text", "body.text.a", "body.seed", "body.preset"].map((field) =>
      fieldOf(at(field)),
    ),
  ).toEqual(["a.b", "", "a", "seed", ""]);
  const problems = [at("body.preset.workload.flows.count"), at("body.preset.sweep[0]"), at("body.seed")];
  expect(about(problems, "workload.flows").length).toBe(1);
  expect(about(problems, "workload.flow").length).toBe(0);
  expect(about(problems, "sweep").length).toBe(1);
  expect(about(problems, "")).toEqual([]);
  const text = "name: x\nfoo: 3\n";
  expect(text.slice(...lineOf(text, 2))).toBe("foo: 3");
  expect(text.slice(...lineOf(text, 99))).toBe("");
});

test("what the check finds needs a change before it is sent; what came of sending it may be over by then", () => {
  const wrong = { field: "body.seed", message: "too small", line: null, column: null };
  const refused = (status: number, detail: string) => new RefusedError({ title: "", status, detail });
  expect(verdictOf(null, { problems: [wrong] }, null)).toEqual({ problems: [wrong], mayBegin: false });
  const [full, silent] = [refused(409, "10 000 wait"), refused(0, "no answer")];
  for (const error of [full, silent]) {
    const { problems, mayBegin } = verdictOf(error, { problems: [] }, null);
    expect(problems.map(({ message }) => message)).toEqual([error.message]);
    expect(mayBegin).toBe(true);
  }
  expect(verdictOf(null, undefined, silent)).toMatchObject({
    problems: [{ message: "no answer" }],
    mayBegin: true,
  });
  expect(verdictOf(null, undefined, null)).toEqual({ problems: [], mayBegin: true });
});

test.each([
  [0.2, "1 s"],
  [8.4, "8 s"],
  [23, "25 s"],
  [100, "2 min"],
  [5000, "83 min"],
  [7300, "2 h"],
  [9300, "2 h 40 min"],
])("%d seconds are roughly %s", (seconds, words) => expect(roughly(seconds)).toBe(words));

test("a spec that is edited as text is sent as text", () => {
  const changes = [{ field: "workload.flows.count", value: "10" }];
  expect(submission({ ...draft, text: "name: x", changes, schemes: ["caps"], seed: "3" }, LABS)).toEqual({
    text: "name: x",
    seed: 3,
  });
});

test("what a text leaves out of the form is known, so that the page can say so", () => {
  const changes = [{ field: "workload.flows.count", value: "10" }];
  const axes = [{ field: "fabric.spines", values: "4,8" }];
  for (const more of [{ changes }, { axes }, { schemes: ["caps"] }, { load: "0.4" }])
    expect(hasChangesForPreset({ ...draft, text: "name: x", ...more })).toBe(true);
  expect(hasChangesForPreset({ ...draft, text: "name: x" })).toBe(false);
  expect(hasChangesForPreset({ ...draft, seed: "3", repeats: "2", kind: "simulation" })).toBe(false); // sent with it
  expect(hasChangesForPreset({ ...draft, changes: [{ field: "x", value: "" }] })).toBe(false);
});

test("the form knows the fields of the spec's own schema", () => {
  const schema: unknown = JSON.parse(
    readFileSync(new URL("../../experiments/spec.schema.json", import.meta.url), "utf8"),
  );
  const fields = new Map(schemaFields(schema).map((one) => [one.field, one]));
  expect(fields.get("fabric.topology")?.choices).toContain("leaf-spine");
  expect(fields.get("fabric.link.rate_mbps")?.kind).toContain("number");
  expect(fields.get("workload.flows.arrivals.kind")?.choices).toEqual(
    expect.arrayContaining(["poisson", "burst"]),
  );
  expect(fields.has("workload.flows.count")).toBe(true);
  expect(fields.has("seed")).toBe(false);
});

test("measures have bars for the schemes that have a figure, a p99 only where it is shown", () => {
  const scheme = (afct: number, shown: boolean) => ({
    scheme: "caps",
    short: {
      n: 40,
      failed: 0,
      afct_ms: afct,
      afct_ci_ms: [afct - 1, afct + 1] as [number, number],
      p50_ms: 1,
      p99_ms: 9,
      p99_ci_ms: null,
      p99_shown: shown,
    },
    long: null,
    retransmissions: 0,
    recovered_packets: 0,
    overhead: 0,
    cpu_limited: false,
    baseline: false,
  });
  const found = measures({ schemes: { caps: scheme(96.9, false), rps: scheme(167.1, false) } });
  expect(found.map((measure) => measure.name)).toEqual(["Short flows: mean completion time"]);
  expect(found[0]?.bars.map((bar) => [bar.label, bar.value, bar.interval])).toEqual([
    ["caps", 96.9, [95.9, 97.9]],
    ["rps", 167.1, [166.1, 168.1]],
  ]);
  expect(found[0]?.format(96.94)).toBe("96.9 ms");
  expect(measures({ schemes: { caps: scheme(1, true) } }).length).toBe(2);
});
