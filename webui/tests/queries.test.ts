import { onlineManager, QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import type { FlowDetail } from "../src/api/schema";
import { DEFAULTS, flowEveryMs } from "../src/api/queries";
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

test("a flow that is not there is not asked for twice a second", () => {
  const detail = (state: "active" | "ended") => ({ flow: flow(1, { state }) }) as FlowDetail;
  expect(flowEveryMs({ data: undefined, error: null })).toBe(500);
  expect(flowEveryMs({ data: detail("active"), error: null })).toBe(500);
  expect(flowEveryMs({ data: detail("ended"), error: null })).toBe(5_000);
  expect(flowEveryMs({ data: undefined, error: new Error("flow 1 is not known") })).toBe(5_000);
});
