import { describe, expect, test } from "vitest";
import { eventWords } from "../src/fabric/eventWords";

describe("events in words", () => {
  test("a part of the lab that came back", () => {
    const event = {
      cursor: 3,
      at: 1,
      kind: "part-restarted",
      part: "agent h3",
      how: "signal 9",
      after_s: 0.41,
    };
    expect(eventWords(event)).toBe("agent h3 ended (signal 9) and was started again after 0.4 s");
  });
});
