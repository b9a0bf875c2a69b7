import { expect, test } from "vitest";
import { DEAD_AFTER_MS, OLD_AFTER_MS, StreamWatch } from "../src/live/watch";

test("silence makes what is shown old, then the connection dead; a message makes it live again", () => {
  const watch = new StreamWatch(0);
  watch.sampled(0);
  expect(watch.health(OLD_AFTER_MS - 1)).toBe("live");
  expect(watch.health(OLD_AFTER_MS)).toBe("old");
  expect(watch.health(DEAD_AFTER_MS)).toBe("dead");
  watch.received(DEAD_AFTER_MS + 5);
  expect(watch.health(DEAD_AFTER_MS + 6)).toBe("live");
});

test("samples that come seldom are old when they are late", () => {
  const watch = new StreamWatch(0);
  watch.sampled(0);
  watch.comesEvery(10);
  expect(watch.health(10_000)).toBe("live");
  expect(watch.health(15_000)).toBe("old");
  watch.comesEvery(0.25);
  expect(watch.health(OLD_AFTER_MS)).toBe("old");
});

test("attempts are further and further apart up to ten seconds, and soon again after a message", () => {
  const watch = new StreamWatch(0);
  expect([1, 2, 3, 4, 5, 6].map(() => watch.retryIn())).toEqual([1000, 2000, 4000, 8000, 10_000, 10_000]);
  watch.received(1);
  expect(watch.retryIn()).toBe(1000);
});

test("a stream that has had no sample is quiet, neither old nor dead", () => {
  const watch = new StreamWatch(0);
  watch.received(1);
  expect(watch.health(OLD_AFTER_MS)).toBe("live");
  expect(watch.health(DEAD_AFTER_MS + 2)).toBe("quiet");
  watch.sampled(DEAD_AFTER_MS);
  watch.opening(DEAD_AFTER_MS);
  watch.received(DEAD_AFTER_MS);
  expect(watch.health(3 * DEAD_AFTER_MS)).toBe("quiet");
});

test("a connection that is never answered is dead", () => {
  const watch = new StreamWatch(0);
  watch.opening(10);
  expect(watch.health(9 + DEAD_AFTER_MS)).toBe("live");
  expect(watch.health(10 + DEAD_AFTER_MS)).toBe("dead");
});
