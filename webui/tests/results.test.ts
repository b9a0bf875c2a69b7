import { createElement } from "react";
import { expect, test } from "vitest";
import { Notices } from "../src/experiments/Notices";
import { SchemeTable } from "../src/experiments/Results";
import type { ResultDocument } from "../src/experiments/types";
import { drawn } from "./drawn";

test("a result that another program has stored is shown without the figures that it lacks", async () => {
  const schemes = { mine: { scheme: "mine", short: { n: 3, afct_ms: 71 } } };
  const document = { schemes } as unknown as ResultDocument;
  const html = await drawn(createElement(SchemeTable, { document }));
  expect(html).toContain('data-scheme="mine"');
  expect(html).not.toMatch(/NaN|undefined/);
});

test("what a reader of a result has to know is shown", async () => {
  const html = await drawn(createElement(Notices, { summary: { notices: ["2 runs are by Capstan 0.1.0"] } }));
  expect(html).toContain("2 runs are by Capstan 0.1.0");
  expect(html).not.toContain("more note");
});

test("what is to be known of several points of a sweep is shown once, and where the rest is", async () => {
  const many = Array.from({ length: 14 }, (_, run) => `run ${run + 1} changed`);
  const points = [{ notices: ["run 1 changed"] }, { notices: many }, {}];
  const html = await drawn(createElement(Notices, { summary: { points } }));
  expect(html.match(/run 1 changed/g)).toHaveLength(1);
  expect(html).toContain("run 12 changed");
  expect(html).not.toContain("run 13 changed");
  expect(html).toContain("2 more notes in the file Results (JSON)");
});

test("nothing is shown of a result without notices, or while there is none", async () => {
  for (const summary of [null, {}, { notices: [] }, { points: [{}] }, { notices: [{ run: 1 }] }])
    expect(await drawn(createElement(Notices, { summary }))).not.toContain("What to know");
});
