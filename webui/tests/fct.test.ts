import { expect, test, vi } from "vitest";
import { schemeChanges } from "../src/fct/schemeChanges";
import { distribution, figures, groups, longGoodput, schemeIntervals, schemeOf } from "../src/fct/statistics";
import { flow } from "./flow";

const changed = (at: number, scheme: string) => ({ cursor: at, at, kind: "scheme-changed", scheme });
const ended = (id: number, from: number, to: number, bytes = 50_000) =>
  flow(id, { state: "ended", started_at: from, last_at: to, bytes });

test("a flow counts for the scheme under which it began and ended", () => {
  const known = schemeIntervals(
    [changed(20, "caps"), changed(10, "ecmp"), { cursor: 1, at: 15, kind: "other" }],
    "caps",
  );
  expect(schemeOf(ended(1, 11, 12), known)).toBe("ecmp");
  expect(schemeOf(ended(1, 21, 22), known)).toBe("caps");
  expect(schemeOf(ended(1, 19, 21), known)).toBeNull();
  expect(schemeOf(ended(1, 5, 6), known)).toBeNull();
  expect(schemeOf(ended(1, 5, 6), schemeIntervals([], "rps"))).toBe("rps");
});

test("where events are gone, the scheme in force is known from the oldest that is left on", async () => {
  const { signal } = new AbortController();
  const oldest = (cursor: number): void => {
    vi.stubGlobal("fetch", (url: string) => {
      const events = url.includes("topics=scheme") ? [] : [{ cursor, at: 40, kind: "mode-changed" }];
      return Promise.resolve(Response.json({ events, cursor: 20_000 }));
    });
  };
  oldest(1);
  expect(await schemeChanges("", signal)).toEqual({ events: [], since: 0 });
  oldest(7);
  const { events, since } = await schemeChanges("", signal);
  expect(since).toBe(40);
  const known = schemeIntervals(events, "caps", since);
  expect(schemeOf(ended(1, 39, 41), known)).toBeNull();
  expect(schemeOf(ended(1, 41, 42), known)).toBe("caps");
});

test("only flows that have ended and carried data are counted, by size", () => {
  const flows = [
    ended(1, 0, 2),
    ended(2, 0, 1),
    ended(3, 0, 3, 9_000_000),
    flow(4, { started_at: 0, last_at: 9 }),
    ended(5, 0, 1, 400),
  ];
  const found = groups(flows, [{ from: 0, scheme: "caps" }]);
  expect(found.map((group) => [group.sizeClass.name, group.times])).toEqual([
    ["10 to 100 kB", [1, 2]],
    ["1 MB and more", [3]],
  ]);
});

test("figures of a hundred flows have a 99th percentile, of fewer none", () => {
  const times = Array.from({ length: 101 }, (_, index) => index);
  expect(figures(times)).toEqual({ n: 101, mean: 50, p50: 50, p99: 99 });
  expect(figures([1, 2, 6]).p99).toBeNull();
  expect(figures([1, 2, 6]).mean).toBe(3);
});

test("a distribution grows to one, in no more steps than asked for", () => {
  const points = distribution(
    Array.from({ length: 1003 }, (_, index) => index + 1),
    1003,
    100,
  );
  expect(points.length).toBeLessThanOrEqual(101);
  expect(points.at(-1)).toEqual([1003, 1]);
  for (const [time, share] of points) expect(share).toBeCloseTo(time / 1003);
  expect(distribution([0, 0, 1, 2])).toEqual([
    [1, 0.75],
    [2, 1],
  ]);
});

test("where flows failed a distribution ends below one", () => {
  expect(distribution([1, 2], 4)).toEqual([
    [1, 0.25],
    [2, 0.5],
  ]);
});

test("goodput is of long flows that are on their way", () => {
  const long = { traffic_class: "long", bits_per_s: 1e6 };
  expect(longGoodput([flow(1, long), flow(2, { ...long, state: "ended" }), flow(3)])).toEqual({
    flows: 1,
    bitsPerS: 1e6,
  });
});
