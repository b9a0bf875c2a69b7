import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { afterEach, expect, test, vi } from "vitest";
import { navigate, navigateFrom, partsOf, useSearch } from "../src/app/location";
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

test("a late answer changes neither the view nor its address once the reader has left", () => {
  const location = { pathname: "/tour", search: "?step=2" };
  const went: string[] = [];
  const go = (_: unknown, __: string, to: string): void => void went.push(to);
  vi.stubGlobal("window", {
    location,
    history: { pushState: go, replaceState: go },
    dispatchEvent: vi.fn(),
    scrollTo: vi.fn(),
  });
  let watch = (): void => undefined;
  renderToStaticMarkup(
    createElement(() => {
      const [, change] = useSearch();
      watch = () => change({ live: "7" });
      return null;
    }),
  );
  watch();
  navigateFrom("/tour", "/compare/7");
  expect(went.splice(0)).toEqual(["/tour?step=2&live=7", "/compare/7"]);
  Object.assign(location, { pathname: "/watch", search: "" });
  watch();
  navigateFrom("/tour", "/compare/7");
  expect(went).toEqual([]);
});

test("another view is shown from its top, another choice in the same view where the reader is", () => {
  const location = { pathname: "/compare", search: "" };
  const go = (_: unknown, __: string, to: string): void => {
    const { pathname, search } = new URL(to, "http://localhost");
    Object.assign(location, { pathname, search });
  };
  const scrollTo = vi.fn();
  vi.stubGlobal("window", {
    location,
    history: { pushState: go, replaceState: go },
    dispatchEvent: vi.fn(),
    scrollTo,
  });
  navigate("/compare?preset=small");
  navigate("/compare/3", true);
  expect(scrollTo).not.toHaveBeenCalled();
  navigate("/compare/4");
  expect(scrollTo).toHaveBeenCalledExactlyOnceWith(0, 0);
});
