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

  test("an experiment that waits to be run has not begun", () => {
    const event = { cursor: 3, at: 1, experiment: 5, name: "small" };
    const words = (kind: string) => eventWords({ ...event, kind });
    expect(words("experiment-submitted")).toBe("experiment 5 (small) was submitted");
    expect(words("experiment-created")).toBe("experiment 5 (small) began");
    expect(words("experiment-progress")).toBeNull();
  });
});
