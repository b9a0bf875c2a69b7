import { onlineManager, QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { DEFAULTS } from "../src/api/queries";

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
