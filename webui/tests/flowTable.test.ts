import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/react-virtual";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { rowsOf } from "../src/flows/FlowTable";

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
