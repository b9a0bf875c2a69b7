import { afterEach, expect, test, vi } from "vitest";
import { navigate, partsOf } from "../src/app/location";
import { whenAtRest } from "../src/replay/address";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("an address that the browser refuses to change takes no view with it", () => {
  const refuse = (): never => {
    throw new DOMException("The operation is insecure.", "SecurityError");
  };
  const dispatchEvent = vi.fn();
  vi.stubGlobal("window", {
    location: { pathname: "/watch/replay", search: "" },
    history: { replaceState: refuse, pushState: refuse },
    dispatchEvent,
  });
  expect(() => navigate("/watch/replay?at=5", true)).not.toThrow();
  expect(() => navigate("/watch")).not.toThrow();
  expect(dispatchEvent).not.toHaveBeenCalled();
});

test("a slider that is dragged for five seconds changes the address once, to where it came to rest", () => {
  vi.useFakeTimers();
  const written: string[] = [];
  const write = whenAtRest((value) => written.push(value));
  let takeBack = write("0");
  for (let move = 1; move <= 300; move += 1) {
    vi.advanceTimersByTime(1000 / 60);
    takeBack();
    takeBack = write(String(move));
  }
  expect(written).toEqual([]);
  vi.advanceTimersByTime(1000);
  expect(written).toEqual(["300"]);
});

test("an address with a percent sign of its own is read as it stands", () => {
  expect(partsOf("/understand/caps%20one")).toEqual(["understand", "caps one"]);
  expect(partsOf("/understand/50%")).toEqual(["understand", "50%"]);
});
