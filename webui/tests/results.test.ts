import { createElement } from "react";
import { expect, test } from "vitest";
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
