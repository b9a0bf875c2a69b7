import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/react-virtual";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { rowsOf, SHOWN } from "../src/flows/FlowTable";
import { clockTime, dayTime } from "../src/parts/units";
import { flow } from "./flow";

test("rows are placed by their height, also after the page has become larger for a room", () => {
  const options = (height: number) => ({
    ...rowsOf(height),
    count: 100,
    getScrollElement: () => null,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
  });
  const virtual = new Virtualizer<HTMLDivElement, HTMLDivElement>(options(32));
  expect(virtual.getTotalSize()).toBe(3200);
  virtual.setOptions(options(41.6));
  expect(virtual.getTotalSize()).toBeCloseTo(4160);
});

test("a long name is cut in its cell", () => {
  const style = readFileSync(new URL("../src/flows/flows.module.css", import.meta.url), "utf8");
  const cell = /\.body \.row > div:not\(:first-child\) \{([^}]*)\}/.exec(style)?.[1];
  expect(cell).toContain("overflow: hidden");
  expect(cell).toContain("text-overflow: ellipsis");
});

test("a flow of another day has its day", () => {
  const began = (at: number) =>
    SHOWN.find(({ column }) => column === "started_at")?.text(flow(1, { started_at: at }));
  const now = Date.now() / 1000;
  expect(began(now)).toBe(clockTime(now));
  expect(began(now - 2 * 86_400)).toBe(dayTime(now - 2 * 86_400));
});
