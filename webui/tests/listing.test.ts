import { afterEach, expect, test, vi } from "vitest";
import type { LiveFlow } from "../src/api/schema";
import { refreshed } from "../src/flows/listing";
import { flow } from "./flow";

/** A controller's own list, answered as docs/api.md says. */
function controller(flows: LiveFlow[]): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (url: string) => {
    asked.push(url);
    const query = new URL(url, "http://localhost").searchParams;
    const [limit, before] = [Number(query.get("limit")), Number(query.get("before") ?? Infinity)];
    const found = flows.filter(
      (one) => one.id < before && (!query.has("state") || one.state === query.get("state")),
    );
    const page = found.slice(0, limit);
    return Promise.resolve(
      Response.json({ flows: page, next: found.length > limit ? (page.at(-1)?.id ?? null) : null }),
    );
  });
  return asked;
}

const numbers = (newest: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => newest - index);
const { signal } = new AbortController();
afterEach(() => vi.unstubAllGlobals());

test("the first time all flows are asked for, and shown while they come", async () => {
  controller(numbers(25_500, 25_500).map((id) => flow(id, { state: "ended" })));
  const shown: number[] = [];
  const all = await refreshed("", undefined, signal, (soFar) => shown.push(soFar.flows.length));
  expect(shown).toEqual([10_000, 20_000]);
  expect(all.whole).toBe(true);
  expect(all.flows.map((one) => one.id)).toEqual(numbers(25_500, 25_500));
});

test("later only new flows, active ones and those that have ended are asked for", async () => {
  const now = (id: number): LiveFlow =>
    flow(id, { state: id === 8_003 ? "active" : "ended", bytes: id === 40 ? 99 : 1 });
  const known = numbers(8_000, 8_000).map((id) =>
    flow(id, { state: id === 40 ? "active" : "ended", bytes: 1 }),
  );
  const asked = controller(numbers(8_003, 8_003).map(now));
  const all = await refreshed("", { flows: known, whole: true }, signal, () => expect.unreachable());
  expect(all.flows.map((one) => one.id)).toEqual(numbers(8_003, 8_003));
  expect(all.flows.find((one) => one.id === 40)).toMatchObject({ state: "ended", bytes: 99 });
  expect(asked.length).toBe(3);
});

test("flows that had ended and have gone on since are known as they are now", async () => {
  const now = (id: number): LiveFlow =>
    flow(id, { state: id === 7 ? "active" : "ended", bytes: id === 7 || id === 1_990 ? 9 : 1 });
  const known = numbers(2_000, 2_000).map((id) => flow(id, { state: "ended", bytes: 1 }));
  controller(numbers(2_000, 2_000).map(now));
  const all = await refreshed("", { flows: known, whole: true }, signal, () => expect.unreachable());
  expect(all.flows.map((one) => one.id)).toEqual(numbers(2_000, 2_000));
  expect(all.flows.find((one) => one.id === 7)).toMatchObject({ state: "active", bytes: 9 });
  expect(all.flows.find((one) => one.id === 1_990)).toMatchObject({ state: "ended", bytes: 9 });
});

test("a controller that began anew is believed", async () => {
  controller(numbers(3, 3).map((id) => flow(id)));
  const known = numbers(500, 500).map((id) => flow(id));
  const all = await refreshed("", { flows: known, whole: true }, signal, () => undefined);
  expect(all.flows.map((one) => one.id)).toEqual([3, 2, 1]);
});

test("a list that was broken off is asked for anew", async () => {
  controller(numbers(30, 30).map((id) => flow(id, { state: "ended" })));
  const all = await refreshed("", { flows: [flow(30)], whole: false }, signal, () => undefined);
  expect(all.flows.length).toBe(30);
});
