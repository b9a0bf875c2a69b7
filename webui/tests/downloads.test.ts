import { createElement } from "react";
import { expect, test } from "vitest";
import { Downloads, NotDrawn } from "../src/experiments/Downloads";
import type { Experiment } from "../src/experiments/types";
import { drawn } from "./drawn";

const paths = { paths: { "/api/v1/experiments/{experiment}/figures": {} } };
const figures = { figures: [{ name: "by-size", caption: "By size.", formats: ["svg", "png"] }] };
const page = (more: Partial<Experiment>, answer: unknown = figures) =>
  drawn(
    createElement(Downloads, {
      experiment: { id: 7, name: "small", kind: "experiment", runs: [], ...more } as Experiment,
    }),
    [
      [["openapi"], paths],
      [["experiments", 7, "figures"], answer],
    ],
  );

test("figures are there once the experiment is over, and are loaded although they are out of sight", async () => {
  const running = await page({ state: "running" });
  expect(running).not.toContain("<img");
  expect(running).toContain("once it is over");
  const finished = await page({ state: "finished" });
  expect(finished).toContain('src="/api/v1/experiments/7/figures/by-size.svg"');
  expect(finished).not.toContain("lazy");
});

test("a sweep, which the page draws itself, has its figures for print as files, one for each part", async () => {
  const points = [1, 2].map((load) => ({ experiment: load, at: ["ns2", load], schemes: {} }));
  const axes = ["profile", "load"].map((label) => ({ label, unit: "" }));
  const html = await page({ state: "finished", summary: { sweep: axes, points } });
  expect(html).not.toContain("<img");
  for (const part of [1, 2])
    for (const format of ["svg", "png"])
      expect(html).toContain(`/api/v1/experiments/7/figures/sweep.${format}?part=${part}`);
});

test("figures that cannot be listed are said to be missing, and why", async () => {
  const failed = await page({ state: "finished" }, new Error("two figures are being drawn"));
  expect(failed).toContain("No figures: two figures are being drawn");
  expect(await page({ state: "finished" })).not.toContain("No figures");
});

test("a figure that was not drawn, perhaps for those of others, can be asked for again", async () => {
  const html = await drawn(createElement(NotDrawn, { words: "By size.", again: () => undefined }));
  expect(html).toContain("By size.");
  expect(html).toContain("too many figures were being drawn");
  expect(html).toContain("Try again");
});
