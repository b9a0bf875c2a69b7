import { createElement } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Claims } from "../src/experiments/Claims";
import type { Claim, ClaimVerdict } from "../src/experiments/types";
import { drawn } from "./drawn";

beforeEach(() => vi.stubGlobal("window", { location: { pathname: "/", search: "" } }));
afterEach(() => vi.unstubAllGlobals());

const finding = (verdict: ClaimVerdict["verdict"], ratio: number): ClaimVerdict => ({
  verdict,
  ratio,
  interval: [ratio - 0.1, ratio + 0.1],
  why: "",
});
const claim: Claim = {
  text: "CAPS is sooner",
  compare: { measure: "short-mean", scheme: "caps", against: "ecmp" },
};
const POINTS = ["load = 0.3", "load = 0.8"];

const textOf = async (claims: readonly Claim[], points?: readonly string[]): Promise<string> =>
  (await drawn(createElement(Claims, { claims, ...(points && { points }) }))).replaceAll(/<[^>]+>/g, "");

test("the verdicts of a sweep say of which of its points they are", async () => {
  const ours = [finding("seen", 0.4), finding("not seen", 1.2)];
  const text = await textOf([{ ...claim, ours }], POINTS);
  expect(text).toContain("load = 0.3: ✓ seen here ratio 0.40 (95 %: 0.30 to 0.50)");
  expect(text).toContain("load = 0.8: ✕ not seen here ratio 1.20");
});

test("a verdict that compares two points, or is of an experiment alone, names none", async () => {
  const ours = finding("seen", 0.4);
  expect(await textOf([{ ...claim, ours }], POINTS)).not.toContain("load");
  expect(await textOf([{ ...claim, ours }])).toContain("ratio 0.40");
});

test("a share's interval has the share's unit", async () => {
  const alone = { measure: "all-retransmissions", scheme: "capton", against: "" };
  const text = await textOf([{ ...claim, compare: alone, ours: finding("not seen", 0.83) }]);
  expect(text).toContain("share 0.83 % (95 %: 0.73 % to 0.93 %)");
});
