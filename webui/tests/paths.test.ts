import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { RefusedError } from "../src/api/client";
import type { FlowDetail, PathView } from "../src/api/schema";
import type { FlowTrace } from "../src/live/flowHistory";
import { diagram } from "../src/paths/diagram";
import { FlowPaths } from "../src/paths/FlowPaths";
import { HELD_S, newestOf } from "../src/paths/newest";
import { classCounts, effectivePaths, mainPath, shares } from "../src/paths/shares";
import { PathStrip } from "../src/paths/PathStrip";
import { drawn } from "./drawn";
import { flow } from "./flow";

const trace = (id: number, trafficClass: string, moments: FlowTrace["moments"] = []): FlowTrace => ({
  flow: flow(id, { traffic_class: trafficClass }),
  moments,
});

test("packets over N paths evenly are as spread as N, over one as one", () => {
  expect(effectivePaths({ a: 5, b: 5, c: 5, d: 5 })).toBeCloseTo(4);
  expect(effectivePaths({ a: 1000 })).toBe(1);
  expect(effectivePaths({})).toBe(0);
  expect(effectivePaths({ a: 0 })).toBe(0);
});

test("shares add up to one where anything was counted", () => {
  expect(shares({ a: 3, b: 1 })).toEqual({ a: 0.75, b: 0.25 });
  expect(shares({ a: 0 })).toEqual({ a: 0 });
});

test("classes are counted apart, within the window only", () => {
  const moment = (at: number, paths: Record<string, number>) => ({ at, paths });
  const counts = classCounts(
    [
      trace(1, "short", [moment(1, { a: 9 }), moment(5, { a: 1, b: 2 })]),
      trace(2, "long", [moment(5, { a: 7 })]),
    ],
    2,
  );
  expect(counts.get("short")).toEqual({ a: 1, b: 2 });
  expect(counts.get("long")).toEqual({ a: 7 });
});

test("a step has a main path where one took most of its packets", () => {
  expect(mainPath({ paths: { a: 9, b: 1 } })).toBe("a");
  expect(mainPath({ paths: { a: 1, b: 1 } })).toBeNull();
  expect(mainPath({ paths: {} })).toBeNull();
});

test("the shown short flow is held long enough to be read, then the newest is shown", () => {
  const first = newestOf([trace(5, "short")], "short", null, 100);
  expect(first).toEqual({ id: 5, since: 100 });
  const both = [trace(6, "short"), trace(5, "short")];
  expect(newestOf(both, "short", first, 100 + HELD_S - 0.1)?.id).toBe(5);
  expect(newestOf(both, "short", first, 100 + HELD_S)?.id).toBe(6);
  expect(newestOf([], "short", first, 200)?.id).toBe(5);
  expect(newestOf(both, "short", first, 100 - 2 * HELD_S)).toEqual({ id: 6, since: 100 - 2 * HELD_S });
});

test("a long flow is shown as long as there are updates of it", () => {
  const held = { id: 5, since: 0 };
  expect(newestOf([trace(6, "long"), trace(5, "long")], "long", held, 500)).toBe(held);
  expect(newestOf([trace(6, "long")], "long", held, 500)?.id).toBe(6);
});

test("streams of acknowledgements are no flows to show", () => {
  const acks = trace(9, "short");
  acks.flow = { ...acks.flow, bytes: 40 * 52 };
  expect(newestOf([acks, trace(8, "short")], "short", null, 1)?.id).toBe(8);
  acks.moments = [{ at: 5, paths: { a: 100 } }];
  expect(classCounts([acks], 0).size).toBe(0);
});

test("the diagram has a column a hop, and each edge the share of what went over it", () => {
  const path = (stamp: number, turn: string): PathView => ({
    stamp,
    switches: ["l1", turn, "l2"],
    links: [],
    turn,
  });
  const { nodes, edges, columns, rows } = diagram("h1", "h5", [path(1, "s1"), path(2, "s2")], {
    "1": 3,
    "2": 1,
  });
  expect([columns, rows]).toEqual([5, 2]);
  expect(nodes.filter((node) => node.column === 2).map((node) => node.name)).toEqual(["s1", "s2"]);
  const share = (from: string, to: string) =>
    edges.find((edge) => edge.from === from && edge.to === to)?.share;
  expect(share("0 h1", "1 l1")).toBeCloseTo(1);
  expect(share("1 l1", "2 s1")).toBeCloseTo(0.75);
  expect(share("2 s2", "3 l2")).toBeCloseTo(0.25);
});

test("names of paths have room beside a flow's packets, that of paths within a leaf, too", async () => {
  const detail: FlowDetail = { flow: flow(1), timeline: [], modes: [], paths: [], queues: [], faults: [] };
  const names = new Map([["7", "0xaabbccddeeff"]]);
  const strip = createElement(PathStrip, { detail, stamps: ["0", "7"], names, modal: false, to: 10 });
  const texts = [...(await drawn(strip)).matchAll(/<text x="([\d.]+)"[^>]*>([^<▼▲]+)</g)];
  const ends = new Map(texts.map(([, x, words]) => [words, Number(x)]));
  for (const name of ["within the leaf", "0xaabbccddeeff"])
    expect(ends.get(name)).toBeGreaterThan(7.5 * name.length);
});

test("a flow that was shown is not shown on when all is forgotten, as at another controller", () => {
  const held = { id: 17, since: 1 };
  expect(newestOf([], "long", held, 1 + 2 * HELD_S)).toEqual(held);
  expect(newestOf([], "long", held, null)).toBeNull();
});

test("a flow that the controller does not know, or no more, is not shown as it was", async () => {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  const queryKey = ["flow", "", 7];
  const detail: FlowDetail = { flow: flow(7), timeline: [], modes: [], paths: [], queues: [], faults: [] };
  const html = (): string => {
    const page = createElement(FlowPaths, { id: 7, heading: "A flow" });
    const themed = createElement(MantineProvider, null, page);
    return renderToStaticMarkup(createElement(QueryClientProvider, { client: queries }, themed));
  };
  queries.setQueryData(queryKey, detail);
  expect(html()).toContain('data-flow="7"');
  const refused = new RefusedError({ title: "Not Found", status: 404, detail: "flow 7 is not known" });
  const queryFn = () => Promise.reject(refused);
  await expect(queries.fetchQuery({ queryKey, queryFn, staleTime: 0 })).rejects.toBe(refused);
  expect(html()).toContain("flow 7 is not known");
  expect(html()).not.toContain('data-flow="7"');
});
