import { MantineProvider } from "@mantine/core";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { afterEach, expect, test, vi } from "vitest";
import { focusFirst, focusHeading, onMap } from "../src/parts/focus";
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
