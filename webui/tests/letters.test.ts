import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const SOURCES = `${import.meta.dirname}/../src`;
const SHEETS = Object.fromEntries(
  (readdirSync(SOURCES, { recursive: true }) as string[])
    .filter((name) => name.endsWith(".css"))
    .map((name) => [name, readFileSync(`${SOURCES}/${name}`, "utf-8")]),
);

/** Return a selector's specificity as a number: classes, attributes and states before elements; no ids are used. */
function specificity(selector: string): number {
  const counted = selector
    .replace(/:where\([^()]*(\([^()]*\)[^()]*)*\)/g, "")
    .replace(/:not\(([^()]*)\)/g, "$1");
  const weighty = counted.match(/\.[\w-]+|\[[^\]]*\]|:(?!:)[\w-]+/g) ?? [];
  const elements = counted.replace(/\.[\w-]+|\[[^\]]*\]|:[\w-]+/g, "").match(/[a-z][\w-]*/gi) ?? [];
  return 100 * weighty.length + elements.length;
}

test("a selector's specificity is counted as browsers do", () => {
  expect(
    [":where(svg text:not([fill]))", "svg text", ".switch > text", "svg text:not([fill])"].map(specificity),
  ).toEqual([0, 2, 101, 102]);
});

test("colours that a drawing gives its letters come before that of all letters", () => {
  const colours = Object.entries(SHEETS).flatMap(([sheet, css]) =>
    [...css.replace(/\/\*[^]*?\*\//g, "").matchAll(/([^{}]+)\{([^{}]*)\}/g)]
      .filter(([, selectors, body]) => /\btext\b/.test(selectors ?? "") && /(^|[\s;])fill:/.test(body ?? ""))
      .map(([, selectors]) => ({ general: sheet.endsWith("page.css"), of: specificity(selectors!.trim()) })),
  );
  const [general, own] = [true, false].map((which) =>
    colours.filter((colour) => colour.general === which).map(({ of }) => of),
  );
  expect(general).toHaveLength(1);
  expect(own!.length).toBeGreaterThan(3);
  expect(Math.min(...own!)).toBeGreaterThan(general![0]!);
});
