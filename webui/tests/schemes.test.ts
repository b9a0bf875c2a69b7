import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { FlowRecord } from "../src/api/schema";
import { measures } from "../src/experiments/bars";
import { sweepParts } from "../src/experiments/sweep";
import { shortFlowTimes } from "../src/experiments/times";
import type { Experiment, SchemeResult } from "../src/experiments/types";
import { MARKER_PATHS } from "../src/parts/marker";
import { crc32, SCHEMES, schemeStyle, stylesOf } from "../src/parts/schemes";

const figures = readFileSync(new URL("../../figures/style.py", import.meta.url), "utf8");

test("schemes look as in the figures", () => {
  const theirs = Object.fromEntries(
    [...figures.matchAll(/\("([\w-]+)", "(#[0-9a-f]{6})", "(.)"\)/g)].map(([, name, colour, marker]) => [
      name,
      { colour, marker },
    ]),
  );
  expect(Object.keys(theirs).length).toBeGreaterThan(20);
  expect(SCHEMES).toEqual(theirs);
});

test("so do schemes that are not ours: zlib's CRC-32 chooses", () => {
  expect(crc32("123456789")).toBe(0xcbf43926);
  const palette = /PALETTE: Final = \(([^)]*)\)/.exec(figures)?.[1]?.match(/#[0-9a-f]{6}/g);
  const number = crc32("my-scheme");
  expect(schemeStyle("my-scheme").colour).toBe(palette?.[number % 8]);
});

test("every marker has a shape", () => {
  for (const { marker } of Object.values(SCHEMES)) expect(MARKER_PATHS[marker]).toMatch(/^M/);
});

const RULES = {
  "rps-timer": { scheme: "rps-inorder" },
  "rps-paths": { scheme: "rps-inorder" },
  "rps-paths-for-all": { scheme: "rps-inorder" },
  "caps-timer": { scheme: "caps" },
  "caps-long-timer": { scheme: "caps" },
  "caps-paths": { scheme: "caps" },
  htpc: { scheme: "htpc" },
  "htpc-paths": { scheme: "htpc" },
};

test("settings of one scheme look different, and the first of them as the scheme does", () => {
  const styleOf = stylesOf(RULES);
  expect(["rps-timer", "caps-timer", "htpc"].map(styleOf)).toEqual(
    ["rps-inorder", "caps", "htpc"].map(schemeStyle),
  );
  const shown = Object.keys(RULES).map(styleOf);
  expect(new Set(shown.map(({ colour }) => colour)).size).toBe(8);
});

test("labels look as in the figures", () => {
  const file = new URL("../../tests/unit/golden/label_styles.json", import.meta.url);
  const cases = JSON.parse(readFileSync(file, "utf8")) as Record<
    string,
    { schemes: Record<string, string>; styles: Record<string, [string, string]> }
  >;
  expect(Object.keys(cases).length).toBeGreaterThan(3);
  for (const { schemes, styles } of Object.values(cases)) {
    const labels = Object.fromEntries(Object.entries(schemes).map(([label, scheme]) => [label, { scheme }]));
    const styleOf = stylesOf(labels);
    const shown = Object.keys(schemes).map((label) => {
      const { colour, marker } = styleOf(label);
      return [label, [colour, marker]];
    });
    expect(Object.fromEntries(shown)).toEqual(styles);
  }
});

test("however many settings a scheme has, none looks like another", () => {
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`k=${index}`, { scheme: "caps" }]),
  );
  const shown = Object.keys(many).map(stylesOf(many));
  expect(new Set(shown.map(({ colour, marker }) => colour + marker)).size).toBe(40);
});

test("a sweep's chart, its bars and its curves agree on what a label looks like", () => {
  const result = (scheme: string): SchemeResult => ({
    scheme,
    short: {
      n: 40,
      failed: 0,
      afct_ms: 50,
      afct_ci_ms: null,
      p50_ms: 1,
      p99_ms: 9,
      p99_ci_ms: null,
      p99_shown: false,
    },
    retransmissions: 0,
    recovered_packets: 0,
    overhead: 0,
    cpu_limited: false,
    baseline: false,
  });
  const schemes = { "hold-1t": result("caps"), "hold-2t": result("caps") };
  const looks = Object.keys(schemes).map(stylesOf(schemes));
  expect(looks[1]).not.toEqual(looks[0]);
  const [part] = sweepParts({
    sweep: [{ label: "T", unit: "" }],
    points: [{ experiment: 1, at: [1], schemes }],
  });
  expect(part?.charts[0]?.lines.map((line) => line.style)).toEqual(looks);
  expect(measures({ schemes })[0]?.bars.map((bar) => bar.style)).toEqual(looks);
  const runs = ["hold-1t", "hold-2t"].map((label, id) => ({ id, label }));
  const records = [0, 1].map((run_id) => ({ run_id, traffic_class: "short", fct_s: 1 }) as FlowRecord);
  const curves = shortFlowTimes({ runs, summary: { schemes } } as unknown as Experiment, records);
  expect(curves.map((curve) => curve.style)).toEqual(looks);
});
