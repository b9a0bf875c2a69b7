import { expect, test } from "vitest";
import { inForce } from "../src/control/SchemeControls";
import { newestError } from "../src/control/useFaultChanges";
import { connectionWords } from "../src/live/words";

test("a scheme is said to be in force while it is, not after another client has switched", () => {
  const applied = { base: "caps", version: 4, applied_ms: 21 };
  expect(inForce(applied, { version: 4 })).toBe(
    "caps is in force: all switches and agents confirmed within 21.0 ms.",
  );
  expect(inForce(applied, { version: 5 })).toBe("");
  expect(inForce(undefined, { version: 4 })).toBe("");
});

test("an error is shown until something else is asked for", () => {
  const failed = { submittedAt: 1, error: new Error("no such link") };
  const never = { submittedAt: 0, error: null };
  expect(newestError(failed, never)?.message).toBe("no such link");
  expect(newestError(failed, { submittedAt: 2, error: null })).toBeNull();
  expect(
    newestError({ submittedAt: 3, error: null }, { submittedAt: 2, error: new Error("old") }),
  ).toBeNull();
});

test.each([
  ["lost", 0.3, "○ connection lost, data 0 s old; trying again"],
  ["lost", 5.9, "○ connection lost, data 5 s old; trying again"],
  ["old", 65, "◐ no updates, data 1 min 5 s old"],
  ["connecting", null, "◌ connecting…"],
] as const)("%s for %s s", (connection, silentS, words) =>
  expect(connectionWords(connection, silentS)).toBe(words),
);
