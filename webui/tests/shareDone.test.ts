import { describe, expect, it } from "vitest";
import { shareDone } from "../src/experiments/shareDone";

describe("how much of an experiment is done", () => {
  it.each([
    ["nothing has begun, and nothing is estimated", 0, 4, 0, null, 0],
    ["a single run goes by its time", 0, 1, 3, 9, 0.25],
    ["an estimate that has risen takes nothing back", 2, 4, 10, 90, 0.5],
    ["without an estimate runs count", 1, 4, 50, null, 0.25],
    ["it is over", 4, 4, 60, null, 1],
    ["a spec without runs", 0, 0, 0, 0, 0],
    ["more runs than there were to be", 5, 4, 1, 0, 1],
  ])("%s", (_, runs_done, runs, elapsed_s, left_s, expected) => {
    expect(shareDone({ runs_done, runs, elapsed_s, left_s })).toBeCloseTo(expected);
  });
});
