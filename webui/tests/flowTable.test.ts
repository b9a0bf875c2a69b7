import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/react-virtual";
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
