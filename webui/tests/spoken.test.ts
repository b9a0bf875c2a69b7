import { createElement } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Header } from "../src/app/Header";
import { FlowsPage } from "../src/flows/FlowsPage";
import { LiveStore } from "../src/live/store";
import { LiveContext } from "../src/live/useLive";
import { drawn } from "./drawn";
import { flow } from "./flow";

beforeEach(() => vi.stubGlobal("window", { location: { pathname: "/", search: "" } }));
afterEach(() => vi.unstubAllGlobals());

/** What a screen reader says by itself whenever it changes. */
const spoken = (html: string): string[] =>
  [...html.matchAll(/role="status"[^>]*>([^<]*)</g)].map(([, text]) => text ?? "");

test("a lost connection is said once, while its age goes on beside it", async () => {
  const store = new LiveStore();
  store.receivedAt = performance.now() - 7_500;
  store.setConnection("lost");
  const header = createElement(Header, { place: null, help: () => undefined });
  const html = await drawn(createElement(LiveContext, { value: store }, header));
  expect(html).toContain("data 7 s old");
  expect(spoken(html)).toEqual(["○ connection lost; trying again"]);
});

test("the number of flows is said for a choice, not again at each sample", async () => {
  const store = new LiveStore();
  const page = createElement(LiveContext, { value: store }, createElement(FlowsPage));
  const known = [[["flows", ""], { flows: [flow(1)], whole: true }]] as const;
  store.takeFlows({ at: 1, interval_s: 0.5, flows: [flow(2), flow(3)], more: 0 });
  const html = await drawn(page, known);
  expect(html.replaceAll(/<[^>]+>/g, "")).toContain("3 flows of 3");
  expect(spoken(html)).toEqual(["1 flow found"]);
});
