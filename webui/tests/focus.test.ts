import { MantineProvider } from "@mantine/core";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { afterEach, expect, test, vi } from "vitest";
import { focusAdding, focusFirst, focusHeading, focusIfLost, onMap } from "../src/parts/focus";
import { Panel } from "../src/parts/Panel";

afterEach(() => vi.unstubAllGlobals());

test("the heading of a panel can be focused by the page, and is no stop of the Tab key", () => {
  const panel = createElement(Panel, { title: "Link l1-s1", children: null });
  const html = renderToStaticMarkup(createElement(MantineProvider, null, panel));
  expect(html).toMatch(/<h2[^>]* tabindex="-1"[^>]*>Link l1-s1</);
});

test("after an action the heading of the control's own panel is focused", () => {
  const focus = vi.fn();
  const section = { querySelector: (selector: string) => (selector === "h2" ? { focus } : null) };
  focusHeading({
    closest: (selector: string) => (selector === "section" ? section : null),
  } as unknown as Element);
  expect(focus).toHaveBeenCalledOnce();
});

test("what was chosen is focused, or else what is beside it", () => {
  const focused: string[] = [];
  vi.stubGlobal("CSS", { escape: (name: string) => name.replaceAll(".", "\\.") });
  const there = [onMap("link", "h1-l1"), "main"];
  vi.stubGlobal("document", {
    querySelector: (selector: string) =>
      there.includes(selector) ? { focus: () => focused.push(selector) } : null,
  });
  focusFirst(onMap("link", "h1-l1"), "main");
  focusFirst(onMap("host", "10.0.0.1"), "main");
  focusFirst("nowhere");
  expect(focused).toEqual(['[data-link="h1-l1"]', "main"]);
});

const SOURCES = import.meta.glob<string>("../src/**/*.tsx", {
  query: "?raw",
  import: "default",
  eager: true,
});

test("buttons that send something, and may be gone with the answer, hand the focus on", () => {
  const sending = Object.values(SOURCES).flatMap((source) => [
    ...source.matchAll(/onClick=\{(\([^)]*\) => (?:\{[^}]*\}|\w+\.mutate\([^)]*\)))\}/g),
  ]);
  const handlers = sending
    .map(([, handler]) => handler ?? "")
    .filter((handler) => handler.includes(".mutate("));
  expect(handlers.length).toBeGreaterThan(3);
  expect(handlers.filter((handler) => !handler.includes("focusHeading("))).toEqual([]);
});

test("after a row of a form is removed, the button that adds such rows is focused", () => {
  const focus = vi.fn();
  const fieldset = { querySelectorAll: () => [{ focus: () => expect.unreachable() }, { focus }] };
  focusAdding({
    closest: (selector: string) => (selector === "fieldset" ? fieldset : null),
  } as unknown as Element);
  expect(focus).toHaveBeenCalledOnce();
  focusAdding({ closest: () => null } as unknown as Element);
});

test("a new view has the focus if it went with the view before, and does not take it from a link", () => {
  const focus = vi.fn();
  const body = {};
  const has = (activeElement: object | null) =>
    vi.stubGlobal("document", { activeElement, body, querySelector: () => ({ focus }) });
  has({});
  focusIfLost("main");
  expect(focus).not.toHaveBeenCalled();
  for (const lost of [body, null]) {
    has(lost);
    focusIfLost("main");
  }
  expect(focus.mock.calls).toEqual([[{ preventScroll: true }], [{ preventScroll: true }]]);
});
