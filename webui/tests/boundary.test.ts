import { expect, test } from "vitest";
import { ErrorBoundary, failureWords } from "../src/app/ErrorBoundary";

test("a view that failed is tried again at another address, and only there", () => {
  const failed = { at: "compare/5", ...ErrorBoundary.getDerivedStateFromError(new Error("no figure")) };
  const at = (address: string) =>
    ErrorBoundary.getDerivedStateFromProps({ at: address, children: null }, failed);
  expect(at("compare/5")).toBeNull();
  expect(at("compare/6")).toEqual({ at: "compare/6", error: null });
});

test("a part that could not be loaded, as after an upgrade, is said to be that", () => {
  for (const message of [
    "Failed to fetch dynamically imported module: http://127.0.0.1:8080/assets/PathsPage-x1.js",
    "error loading dynamically imported module: http://127.0.0.1:8080/assets/PathsPage-x1.js",
    "Importing a module script failed.",
    "Unable to preload CSS for /assets/PathsPage-x1.css",
  ])
    expect(failureWords(new Error(message))).toContain("of another version than this page");
  expect(failureWords(new Error("no figure"))).toBe("no figure");
});
