import { expect, test } from "vitest";
import { cutApart } from "../src/charts/ticks";
import { comparedBars, OLDER, othersThan, three } from "../src/experiments/comparing";
import { alongAxis, sweepParts } from "../src/experiments/sweep";
import { shortFlowTimes } from "../src/experiments/times";
import type { ComparedScheme, FlowRecord } from "../src/api/schema";
import type { Experiment, SchemeResult, SweepDocument } from "../src/experiments/types";
import { schemeStyle } from "../src/parts/schemes";

const scheme = (name: string, afct: number | null, limited = false): SchemeResult => ({
  scheme: name,
  short:
    afct === null
      ? null
      : {
          n: 40,
          failed: 0,
          afct_ms: afct,
          afct_ci_ms: [afct / 2, afct * 2],
          p50_ms: 1,
          p99_ms: 9,
          p99_ci_ms: null,
          p99_shown: false,
        },
  long: null,
  retransmissions: 0,
  recovered_packets: 0,
  overhead: 0,
  cpu_limited: limited,
  baseline: false,
});

const LOADS = { label: "load", unit: "%" };
const point = (at: (string | number)[], schemes: Record<string, SchemeResult>) => ({
  experiment: 1,
  at,
  schemes,
});

test("a sweep is a chart a measure, a line a scheme, with gaps where it has no figure", () => {
  const document: SweepDocument = {
    sweep: [LOADS],
    points: [
      point([20], { ecmp: scheme("ecmp", 100), mine: scheme("caps", 50, true) }),
      point([40], { ecmp: scheme("ecmp", 200), mine: scheme("caps", null) }),
    ],
  };
  const [part, ...others] = sweepParts(document);
  expect(others).toEqual([]);
  expect(part?.words).toBe("");
  const [chart, ...more] = part?.charts ?? [];
  expect(more).toEqual([]);
  expect([chart?.name, chart?.axis, chart?.ticks]).toEqual([
    "Short flows: mean completion time",
    LOADS,
    [20, 40],
  ]);
  expect(
    chart?.lines.map((line) => [
      line.label,
      line.style,
      line.points.map(({ tick, bar }) => [tick, bar?.value, bar?.interval, bar?.isDoubtful]),
    ]),
  ).toEqual([
    [
      "ecmp",
      schemeStyle("ecmp"),
      [
        [20, 100, [50, 200], false],
        [40, 200, [100, 400], false],
      ],
    ],
    [
      "mine",
      schemeStyle("caps"),
      [
        [20, 50, [25, 100], true],
        [40, undefined, undefined, undefined],
      ],
    ],
  ]);
});

test("further axes have charts of their own, named by their values, in the order of the figure for print", () => {
  const grid = [
    ["ns2", 20],
    ["ns2", 40],
    ["linux", 20],
    ["linux", 40],
  ];
  const parts = sweepParts({
    sweep: [{ label: "profile", unit: "" }, LOADS],
    points: grid.map((at) => point(at, { ecmp: scheme("ecmp", 1) })),
  });
  expect(parts.map((part) => [part.words, part.charts[0]?.ticks])).toEqual([
    ["load = 20 %", ["ns2", "linux"]],
    ["load = 40 %", ["ns2", "linux"]],
  ]);
});

test("without a result nothing is drawn of a sweep, and nothing of what is none", () => {
  expect(sweepParts({})).toEqual([]);
  expect(sweepParts({ sweep: [LOADS], points: [] })).toEqual([]);
  expect(sweepParts({ points: [point([1], {})] })).toEqual([]);
});

const estimate = (mean: number, low: number | null = null) => ({
  mean,
  low,
  high: low === null ? null : 2 * mean - low,
  n: 3,
});
const compared = (label: string): ComparedScheme => ({
  label,
  cpu_limited: [false, true],
  disturbed: [label === "rps", false],
  measures: [
    {
      name: "short.afct_ms",
      title: "Short flows: mean completion time",
      unit: "ms",
      better: "less",
      a: estimate(71, 60),
      b: estimate(80, 70),
      ratio: 80 / 71,
    },
    {
      name: "short.p50_ms",
      title: "Short flows: median completion time",
      unit: "ms",
      better: "less",
      a: estimate(7),
      b: estimate(8),
      ratio: 8 / 7,
    },
    {
      name: "long.goodput_mbps",
      title: "Long flows: goodput together",
      unit: "Mbit/s",
      better: "more",
      a: estimate(9),
      b: estimate(8),
      ratio: 8 / 9,
    },
  ],
});

test("two experiments are two bars a scheme, with the intervals and the mark of each", () => {
  const sides = [
    { id: 3, schemes: { mine: { scheme: "caps" } } },
    { id: 12, schemes: {} },
  ] as const;
  const found = comparedBars([compared("mine"), compared("rps")], sides);
  expect(found.map(({ name, less, format }) => [name, less, format(12.34)])).toEqual([
    ["Short flows: mean completion time", true, "12.3 ms"],
    ["Long flows: goodput together", false, "12.3 Mbit/s"],
  ]);
  expect(
    found[0]?.bars.map((bar) => [bar.label, bar.style, bar.value, bar.interval, bar.isDoubtful]),
  ).toEqual([
    ["mine · 3", schemeStyle("caps"), 71, [60, 82], false],
    ["mine · 12", schemeStyle("caps"), 80, [70, 90], true],
    ["rps · 3", schemeStyle("rps"), 71, [60, 82], true],
    ["rps · 12", schemeStyle("rps"), 80, [70, 90], true],
  ]);
  expect(found[1]?.bars.map((bar) => bar.interval)).toEqual([null, null, null, null]);
});

test("times are of short flows that ended, by label, shortest first, in the result's order of schemes", () => {
  const experiment = {
    runs: [
      { id: 5, label: "mine" },
      { id: 6, label: "ecmp" },
      { id: 7, label: "ecmp" },
    ],
    summary: { schemes: { ecmp: scheme("ecmp", 1), mine: scheme("caps", 1), rps: scheme("rps", 1) } },
  } as unknown as Experiment;
  const flow = (run: number, fct: number | null, traffic_class = "short") =>
    ({ run_id: run, fct_s: fct, traffic_class }) as FlowRecord;
  const flows = [flow(6, 3), flow(5, 2), flow(7, 1), flow(5, null), flow(5, 9, "long"), flow(99, 4)];
  expect(shortFlowTimes(experiment, flows)).toEqual([
    { label: "ecmp", style: schemeStyle("ecmp"), times: [1, 3], flows: 2 },
    { label: "mine", style: schemeStyle("caps"), times: [2], flows: 2 },
  ]);
});

test("an experiment that an address compares with is chosen though it is not among the newest", () => {
  const listed = [200, 199, 198].map((id) => ({
    id,
    name: "small",
    state: id === 198 ? ("failed" as const) : ("finished" as const),
  }));
  const values = (chosen: string, goesOn: boolean): string[] =>
    othersThan(200, listed, chosen, goesOn).map(({ value }) => value);
  expect(values("", false)).toEqual(["199"]);
  expect(values("199", true)).toEqual(["199", OLDER]);
  expect(values("7", true)).toEqual(["7", "199", OLDER]);
  expect(othersThan(1, [], "", false)).toEqual([]);
});

test("a line goes along its axis, however the sweep's values are sorted", () => {
  const ticks = (all: (number | string)[]) =>
    alongAxis(all.map((tick) => ({ tick }))).map(({ tick }) => tick);
  expect(ticks([0.8, 0.2, 10])).toEqual([0.2, 0.8, 10]);
  expect(ticks(["linux", "dctcp"])).toEqual(["linux", "dctcp"]);
});

test("a small ratio of two experiments is not rounded to nothing", () => {
  expect([0, 0.0034, 0.35, 1.2, 123.4].map(three)).toEqual(["0", "0.0034", "0.35", "1.20", "123"]);
});

test("long texts along a sweep's axis are cut so that they do not overlap and stay different", () => {
  const same = "a title that has as many as sixty letters in all, no more, ";
  const titles = [1, 2, 3].map((number) => `${same}${number}`);
  const letters = 12;
  const shortened = cutApart(titles, letters);
  expect(new Set(shortened).size).toBe(3);
  expect(Math.max(...shortened.map((label) => label.length))).toBeLessThanOrEqual(letters);
  expect(cutApart(["ecmp", "caps-with-a-long-name"], letters)).toEqual(["ecmp", "caps-with-a…"]);
  expect(cutApart(titles, 1).every((label) => label.length <= 2)).toBe(true);
});
