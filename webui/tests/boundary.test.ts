import { expect, test } from "vitest";
import { ErrorBoundary } from "../src/app/ErrorBoundary";

test("a view that failed is tried again at another address, and only there", () => {
  const failed = { at: "compare/5", ...ErrorBoundary.getDerivedStateFromError(new Error("no figure")) };
  const at = (address: string) =>
    ErrorBoundary.getDerivedStateFromProps({ at: address, children: null }, failed);
  expect(at("compare/5")).toBeNull();
  expect(at("compare/6")).toEqual({ at: "compare/6", error: null });
});
