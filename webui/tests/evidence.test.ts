import { createElement } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { EvidenceClaim, FoundView } from "../src/api/schema";
import { Evidence } from "../src/understand/Evidence";
import { foundWords, pieces } from "../src/understand/rowWords";
import { drawn } from "./drawn";

beforeEach(() => vi.stubGlobal("window", { location: { pathname: "/", search: "" } }));
afterEach(() => vi.unstubAllGlobals());

const found = (verdict: FoundView["verdict"], figures: FoundView["figures"] = [], note = ""): FoundView => ({
  verdict,
  figures,
  note,
});

test("a verdict comes with its ratios, their intervals, and how a lab differed", () => {
  const figures = [
    { point: "load = 0.3", ratio: 0.347, low: 0.19, high: 0.81 },
    { point: "load = 0.6", ratio: 1.2, low: null, high: null },
  ];
  expect(foundWords(found("in part", figures, "links at 0.5 of their rates"))).toEqual({
    verdict: "◐ holds in part",
    detail: "load = 0.3: 0.35 (0.19 to 0.81); load = 0.6: 1.20 (links at 0.5 of their rates)",
  });
  expect(foundWords(found("holds", [{ point: "", ratio: 0.42, low: 0.39, high: 0.46 }])).detail).toBe(
    "0.42 (0.39 to 0.46)",
  );
  expect(foundWords(found("simulated only", [], "links would need 3 Gbit/s")).detail).toBe(
    "links would need 3 Gbit/s",
  );
});

test("reasons keep their code, and links of the checkout become words", () => {
  expect(pieces("as in `caps-fig27` ([TCP](simulator.md#tcp)): `rps` waits")).toEqual([
    { text: "as in ", code: false },
    { text: "caps-fig27", code: true },
    { text: " (TCP): ", code: false },
    { text: "rps", code: true },
    { text: " waits", code: false },
  ]);
});

const paths = (...names: string[]) => ({
  paths: Object.fromEntries(names.map((name) => [`/api/v1${name}`, {}])),
});
const claim: EvidenceClaim = {
  preset: "ablation",
  paper: "caps",
  text: "Coding shortens short flows",
  source: "CAPS: Coding, 2019",
  figure: "section VI",
  scheme: "caps",
  against: "rps",
  compared: "caps / rps, claimed at most 1",
  row: {
    simulated: found("holds", [{ point: "", ratio: 0.42, low: 0.39, high: 0.46 }]),
    on_switches: found(
      "not",
      [{ point: "", ratio: 1.5, low: 1.25, high: 1.75 }],
      "links at 0.25 of their rates",
    ),
    why: "`rps` fills no queue",
  },
};
const NONE = "No preset has a claim about it.";

test("a scheme is not said to have no claims before an answer says so", async () => {
  const page = createElement(Evidence, { scheme: "tr" });
  expect(await drawn(page)).not.toContain(NONE);
  const asking = await drawn(page, [[["openapi"], paths("/evidence")]]);
  expect(asking).toContain("Asking for claims");
  expect(asking).not.toContain(NONE);
  const failed = await drawn(page, [
    [["openapi"], paths("/evidence")],
    [["evidence"], new Error("the controller does not answer")],
  ]);
  expect(failed).toContain("the controller does not answer");
  expect(failed).not.toContain(NONE);
  const answered = await drawn(page, [
    [["openapi"], paths("/evidence")],
    [["evidence"], { claims: [claim] }],
  ]);
  expect(answered).toContain(NONE);
});

test("each claim says without any experiment here what came of it, where, and why", async () => {
  const html = await drawn(createElement(Evidence, { scheme: "caps" }), [
    [["openapi"], paths("/evidence")],
    [["evidence"], { claims: [claim, { ...claim, text: "Not measured", row: null }] }],
  ]);
  const text = html.replace(/<[^>]+>/g, "");
  expect(text).toContain("In simulation: ✓ holds 0.42 (0.39 to 0.46)");
  expect(text).toContain("On switches: ✕ does not hold 1.50 (1.25 to 1.75) (links at 0.25 of their rates)");
  expect(text).toContain("Why: rps fills no queue");
  expect(text.match(/In simulation/g)).toHaveLength(1);
  expect(html).toContain('href="/compare?preset=ablation"');
});

test("a controller without presets says where they are", async () => {
  const html = await drawn(createElement(Evidence, { scheme: "caps" }), [[["openapi"], paths("/flows")]]);
  expect(html).toContain("./capstan page");
});
