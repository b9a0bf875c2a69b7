import { onlineManager, QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { RefusedError } from "../src/api/client";
import type { FlowDetail } from "../src/api/schema";
import { DEFAULTS, describedEveryMs, flowEveryMs } from "../src/api/queries";
import { experimentEveryMs } from "../src/experiments/queries";
import type { Experiment } from "../src/experiments/types";
import { flow } from "./flow";

afterEach(() => onlineManager.setOnline(true));

test("a browser without a network asks the controller on its own machine, and sends changes there", async () => {
  onlineManager.setOnline(false);
  const queries = new QueryClient({ defaultOptions: DEFAULTS });
  const asked = vi.fn(() => Promise.resolve("answer"));
  void queries.prefetchQuery({ queryKey: ["health"], queryFn: asked });
  void queries.getMutationCache().build(queries, { mutationFn: asked }).execute(undefined);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(asked).toHaveBeenCalledTimes(2);
  expect(queries.getQueryData(["health"])).toBe("answer");
});

const missing = new RefusedError({ title: "Not Found", status: 404, detail: "" });
const silent = new RefusedError({ title: "No answer", status: 0, detail: "" });

test("an experiment that is not there is asked for once, and one that goes on again and again", () => {
  const experiment = (state: "running" | "finished") => ({ state }) as Experiment;
  expect(experimentEveryMs({ data: undefined, error: missing })).toBe(false);
  expect(experimentEveryMs({ data: experiment("finished"), error: null })).toBe(false);
  for (const [data, error] of [
    [undefined, null],
    [undefined, silent],
    [experiment("running"), null],
    [experiment("running"), missing],
  ] as const)
    expect(experimentEveryMs({ data, error })).toBe(1_500);
});

test("a flow that is not there is asked for once", () => {
  expect(flowEveryMs({ data: undefined, error: missing })).toBe(false);
  expect(flowEveryMs({ data: undefined, error: silent })).toBe(5_000);
});

test("a flow is asked for twice a second while it lives, and seldom where it is not known", () => {
  const detail = (state: "active" | "ended") => ({ flow: flow(1, { state }) }) as FlowDetail;
  expect(flowEveryMs({ data: undefined, error: null })).toBe(500);
  expect(flowEveryMs({ data: detail("active"), error: null })).toBe(500);
  expect(flowEveryMs({ data: detail("ended"), error: null })).toBe(5_000);
  expect(flowEveryMs({ data: undefined, error: new Error("flow 1 is not known") })).toBe(5_000);
});

test("what the controller can do is asked for until it is known", () => {
  expect(describedEveryMs({ data: undefined, error: null })).toBe(false);
  expect(describedEveryMs({ data: undefined, error: silent })).toBe(5_000);
  expect(describedEveryMs({ data: { paths: {} }, error: silent })).toBe(false);
});
