import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isFor } from "../src/app/keyboard";

/** As much of the DOM as is asked of the target of a key. */
class Element extends EventTarget {
  isContentEditable = false;
  tabIndex = 0;
  clientWidth = 100;
  scrollWidth = 100;
  constructor(
    readonly type: string,
    readonly role = "",
  ) {
    super();
  }
  closest(selector: string): Element | null {
    const own = [this.type && `input[type=${this.type}]`, this.role && `[role=${this.role}]`];
    return selector.split(", ").some((each) => own.includes(each)) ? this : null;
  }
}
class Input extends Element {}
class Other extends Element {}

beforeEach(() => {
  vi.stubGlobal("HTMLElement", Element);
  vi.stubGlobal("HTMLInputElement", Input);
  vi.stubGlobal("HTMLTextAreaElement", Other);
  vi.stubGlobal("HTMLSelectElement", Other);
});
afterEach(() => vi.unstubAllGlobals());

test("arrow keys belong to the choice or slider that has the focus, other keys to the page", () => {
  for (const target of [new Input("radio"), new Element("", "slider"), new Element("", "radio")]) {
    expect(["ArrowLeft", "ArrowRight", "k"].map((key) => isFor(target, key))).toEqual([true, true, false]);
  }
});

test("arrow keys elsewhere go through the steps, and text takes every key", () => {
  expect([new Input("checkbox"), new Element("")].map((target) => isFor(target, "ArrowRight"))).toEqual([
    false,
    false,
  ]);
  expect(["ArrowLeft", "k"].map((key) => isFor(new Input("text"), key))).toEqual([true, true]);
});

test("arrow keys scroll the wide table that has the focus", () => {
  const table = Object.assign(new Element(""), { scrollWidth: 300 });
  expect(["ArrowRight", "k"].map((key) => isFor(table, key))).toEqual([true, false]);
  const page = Object.assign(new Element(""), { scrollWidth: 300, tabIndex: -1 });
  expect(isFor(page, "ArrowRight")).toBe(false);
  const inline = Object.assign(new Element(""), { scrollWidth: 80, clientWidth: 0 });
  expect(isFor(inline, "ArrowRight")).toBe(false);
});
