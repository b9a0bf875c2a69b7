import { createElement } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { SchemeControls } from "../src/control/SchemeControls";
import { UnderstandPage } from "../src/understand/UnderstandPage";
import { type Answers, drawn } from "./drawn";
import { scheme } from "./scheme";

const at = (pathname: string) => vi.stubGlobal("window", { location: { pathname, search: "" } });
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
