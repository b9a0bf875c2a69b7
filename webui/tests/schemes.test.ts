import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { MARKER_PATHS } from "../src/parts/marker";
import { crc32, SCHEMES, schemeStyle } from "../src/parts/schemes";

const figures = readFileSync(new URL("../../figures/style.py", import.meta.url), "utf8");

test("schemes look as in the figures", () => {
  const theirs = Object.fromEntries(
    [...figures.matchAll(/\("([\w-]+)", "(#[0-9a-f]{6})", "(.)"\)/g)].map(([, name, colour, marker]) => [
      name,
      { colour, marker },
    ]),
  );
  expect(Object.keys(theirs).length).toBeGreaterThan(20);
  expect(SCHEMES).toEqual(theirs);
});

test("so do schemes that are not ours: zlib's CRC-32 chooses", () => {
  expect(crc32("123456789")).toBe(0xcbf43926);
  const palette = /PALETTE: Final = \(([^)]*)\)/.exec(figures)?.[1]?.match(/#[0-9a-f]{6}/g);
  const number = crc32("my-scheme");
  expect(schemeStyle("my-scheme").colour).toBe(palette?.[number % 8]);
});

test("every marker has a shape", () => {
  for (const { marker } of Object.values(SCHEMES)) expect(MARKER_PATHS[marker]).toMatch(/^M/);
});
