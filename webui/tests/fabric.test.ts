import { createElement } from "react";
import { afterEach, describe, expect, it, test, vi } from "vitest";
import type { FabricView, SwitchView } from "../src/api/schema";
import { beside, inBox, layOut, linesOf, linkEnds } from "../src/fabric/layout";
import { FabricMap } from "../src/fabric/FabricMap";
import { LiveStore } from "../src/live/store";
import { LiveContext } from "../src/live/useLive";
import { drawn } from "./drawn";
import { queueMark } from "../src/fabric/LinkLine";
import { moved, type Stop, stopRows } from "../src/fabric/stops";
import { linkWords } from "../src/fabric/linkWords";
import { stepOf, STEPS } from "../src/fabric/utilisation";

function leafSpine(leaves: number, spines: number, hosts: number): FabricView {
  const one = (name: string, tier: number): SwitchView => ({
    name,
    dpid: name,
    connected: true,
    tier,
    role: tier === 0 ? "leaf" : "spine",
    stamp: 1,
  });
  return {
    switches: [
      ...Array.from({ length: leaves }, (_, index) => one(`l${index + 1}`, 0)),
      ...Array.from({ length: spines }, (_, index) => one(`s${index + 1}`, 1)),
    ],
    links: [],
    hosts: Array.from({ length: leaves * hosts }, (_, index) => ({
      name: `h${index + 1}`,
      underlay_ip: "",
      mac: "",
      agent: true,
      place: { switch: `l${Math.floor(index / hosts) + 1}`, port: 1 },
      link: null,
      overlay: [],
    })),
    scheme: "caps",
    settled: true,
  };
}

test.each([
  [2, 16, 4],
  [4, 8, 2],
  [12, 20, 6],
  [1, 1, 1],
])(
  "%d leaves x %d spines with %d hosts each: all apart, inside, spines above leaves above hosts",
  (l, s, h) => {
    const layout = layOut(leafSpine(l, s, h), 700);
    expect(layout.width).toBeGreaterThanOrEqual(700);
    const spots = [...layout.switches.values(), ...layout.hosts.values()];
    expect(spots.length).toBe(l + s + l * h);
    expect(new Set(spots.map((spot) => `${spot.x} ${spot.y}`)).size).toBe(spots.length);
    for (const spot of spots) {
      expect(spot.x).toBeGreaterThan(0);
      expect(spot.x).toBeLessThan(layout.width);
      expect(spot.y).toBeLessThan(layout.height);
    }
    const [spine, leaf, host] = [
      layout.switches.get("s1"),
      layout.switches.get("l1"),
      layout.hosts.get("h1"),
    ];
    expect(spine!.y).toBeLessThan(leaf!.y);
    expect(leaf!.y).toBeLessThan(host!.y);
    expect(layout.rows.map((row) => row.name)).toEqual(["Spines", "Leaves", "Hosts"]);
  },
);

test("names are ordered by their numbers, and unknown tiers are drawn on top", () => {
  const view = leafSpine(2, 10, 1);
  const layout = layOut(view, 1200);
  expect(layout.switches.get("s2")!.x).toBeLessThan(layout.switches.get("s10")!.x);
  const unknown = layOut({ ...view, switches: view.switches.map((one) => ({ ...one, tier: null })) }, 1200);
  expect(unknown.rows[0]?.name).toBe("Not placed yet");
  expect(unknown.switches.size).toBe(12);
});

test("both directions of a link are on their own left side", () => {
  const [up] = beside({ x: 0, y: 10 }, { x: 0, y: 0 }, 2);
  const [down] = beside({ x: 0, y: 0 }, { x: 0, y: 10 }, 2);
  expect(up.x).toBeCloseTo(-2);
  expect(down.x).toBeCloseTo(2);
});

test("utilisation has steps of growing width", () => {
  expect([0, 0.019, 0.02, 0.3, 0.5, 0.79, 0.8, 1.1].map(stepOf)).toEqual([0, 0, 1, 2, 3, 3, 4, 4]);
  const widths = STEPS.map((step) => step.width);
  expect(widths).toEqual([...widths].sort((one, other) => one - other));
});

test("a few packets are no queue, and a full buffer is a large dot", () => {
  expect([null, undefined, 0, 3, 4, 64, 256, 1000].map(queueMark)).toEqual([0, 0, 0, 0, 3, 6, 10, 10]);
});

test("a link's ends are the fabric's, since names of hosts and switches may have a hyphen", () => {
  const fabric = leafSpine(1, 1, 1);
  const known: FabricView = {
    ...fabric,
    links: [
      {
        name: "rack-1-s1",
        kind: "fabric",
        a: { switch: "rack-1", port: 1 },
        b: { switch: "s1", port: 1 },
        up: true,
        speed_kbps: 0,
        rate_kbps: null,
      },
    ],
    hosts: fabric.hosts.map((host) => ({
      ...host,
      name: "web-01",
      place: { switch: "rack-1", port: 2 },
      link: "web-01-rack-1",
    })),
  };
  expect(linkEnds("rack-1-s1", known)).toEqual(["rack-1", "s1"]);
  expect(linkEnds("web-01-rack-1", known)).toEqual(["web-01", "rack-1"]);
  expect(linkEnds("web-01-l1", undefined)).toEqual(["web-01", "l1"]);
});

describe("a link under the pointer", () => {
  const load = {
    bits_per_s: 2_130_000,
    packets_per_s: 180,
    share: 0.85,
    queued_packets: 12,
    dropped_per_s: 3,
  };
  const now = { up: true, rate_kbps: 2500, ab: { ...load, queues: [] }, ba: null };

  it("says what each direction carries, holds and drops, with units", () => {
    expect(linkWords("l1-s1", "l1", "s1", now)).toBe(
      [
        "l1-s1",
        "l1 → s1: 2.13 Mbit/s, 85 %, 180 packets/s, 12 packets waiting, 3.00 packets/s dropped",
        "s1 → l1: not reported",
      ].join("\n"),
    );
  });

  it("has its name alone before the first sample, and is down where it is", () => {
    expect(linkWords("l1-s1", "l1", "s1", undefined)).toBe("l1-s1");
    expect(linkWords("l1-s1", "l1", "s1", { ...now, up: false })).toBe("l1-s1: down");
  });
});

const WIRE = { kind: "fabric" as const, up: true, speed_kbps: 1000, rate_kbps: 1000 };

test("lines end at the layout's own places, so that a sample draws only those that changed", () => {
  const fabric = leafSpine(2, 1, 1);
  const linked: FabricView = {
    ...fabric,
    links: [
      { ...WIRE, name: "l1-s1", a: { switch: "l1", port: 1 }, b: { switch: "s1", port: 1 } },
      { ...WIRE, name: "l1-s9", a: { switch: "l1", port: 2 }, b: { switch: "s9", port: 1 } },
    ],
    hosts: fabric.hosts.map((host) => ({ ...host, link: host.name === "h1" ? "h1-l1" : null })),
  };
  const layout = layOut(linked, 700);
  const lines = linesOf(linked, layout);
  expect(lines.map(({ name, from, to }) => [name, from, to])).toEqual([
    ["l1-s1", "l1", "s1"],
    ["h1-l1", "h1", "l1"],
  ]);
  expect(lines[0]?.a).toBe(layout.switches.get("l1"));
  expect(lines[1]?.a).toBe(layout.hosts.get("h1"));
  expect(lines[1]?.b).toBe(layout.switches.get("l1"));
});

test("links between the same two switches are drawn beside each other", () => {
  const ends = { a: { switch: "l1", port: 1 }, b: { switch: "s1", port: 1 } };
  const links = ["l1-s1", "l1-s1:7", "l1-s1:9"].map((name) => ({ ...WIRE, ...ends, name }));
  const fabric: FabricView = { ...leafSpine(1, 1, 1), links };
  const layout = layOut(fabric, 700);
  const lines = linesOf(fabric, layout);
  expect(lines[0]?.a).toBe(layout.switches.get("l1"));
  for (const side of ["a", "b"] as const) {
    expect(new Set(lines.map((line) => line[side].x)).size).toBe(3);
    expect(new Set(lines.map((line) => line[side].y)).size).toBe(1);
  }
});

test("the ends of a thousand links are found without going through all links for each", () => {
  let reads = 0;
  const links = Array.from({ length: 1000 }, (_, index) => {
    const [a, b] = [`l${index}`, "s-1"];
    return { ...WIRE, name: `${a}-${b}`, a: { switch: a, port: 1 }, b: { switch: b, port: index } };
  });
  const counted = new Proxy(links, {
    get: (all, place, self) => {
      reads += 1;
      return Reflect.get(all, place, self) as unknown;
    },
  });
  const fabric: FabricView = { ...leafSpine(1, 1, 1), links: counted };
  for (const { name, a } of links) expect(linkEnds(name, fabric)).toEqual([a.switch, "s-1"]);
  expect(reads).toBeLessThan(10_000);
});

afterEach(() => vi.useRealTimers());

test.each([0, -3600, 40])(
  "a leaf's mode has its age where the browser's clock is %d s ahead",
  async (ahead) => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1000 * (5_000 + ahead) });
    const store = new LiveStore();
    store.takeHello({ id: "a-1", cursor: 1, version: "", at: 5_000, topics: [], resumed: false });
    const nothing = (): void => undefined;
    const map = createElement(FabricMap, {
      fabric: leafSpine(1, 1, 1),
      link: null,
      host: null,
      chooseLink: nothing,
      chooseHost: nothing,
      modal: true,
    });
    const html = await drawn(createElement(LiveContext, { value: store }, map), [
      [["modes", ""], { leaves: [{ leaf: "l1", mode: "on", since_at: 4_997 }], events: [], cursor: 1 }],
    ]);
    expect(html).toContain("● ON 3.0 s");
  },
);

test.each([-600, 600])("ages of modes follow a clock that is set by %d s while the page is open", (by) => {
  vi.useFakeTimers({ toFake: ["Date"], now: 5_000_000 });
  const store = new LiveStore();
  store.takeHello({ id: "a-1", cursor: 1, version: "", at: 5_000, topics: [], resumed: false });
  store.takeFlows({ at: 4_999.9, interval_s: 0.5, flows: [], more: 0 });
  expect(store.aheadS).toBe(0);
  store.takeLinks({ at: 5_000 + by, interval_s: 0.25, links: [] });
  expect(store.aheadS).toBe(by);
});

test("a map of any size is one stop of the Tab key, of which all else is reached by arrow keys", async () => {
  const [leaves, spines, hosts] = [8, 4, 3];
  const view = leafSpine(leaves, spines, hosts);
  view.links = view.switches
    .filter(({ role }) => role === "leaf")
    .flatMap((leaf) =>
      ["s1", "s2", "s3", "s4"].map((spine) => ({
        name: `${leaf.name}-${spine}`,
        kind: "fabric" as const,
        a: { switch: leaf.name, port: 1 },
        b: { switch: spine, port: 1 },
        up: true,
        speed_kbps: 0,
        rate_kbps: null,
      })),
    );
  view.hosts.forEach((host) => (host.link = `${host.place?.switch}-${host.name}`));
  const nothing = () => undefined;
  const stops = async (link: string | null, host: string | null) => {
    const map = createElement(FabricMap, {
      fabric: view,
      link,
      host,
      chooseLink: nothing,
      chooseHost: nothing,
      modal: false,
    });
    const html = await drawn(map);
    expect(html.match(/role="button"/g)?.length).toBe(leaves * spines + 2 * leaves * hosts);
    return [...html.matchAll(/<g[^>]*tabindex="0"[^>]*data-(?:link|host)="([^"]*)"/gi)].map(
      ([, name]) => name,
    );
  };
  expect(await stops(null, null)).toEqual(["l1-s1"]);
  expect(await stops("l3-s2", null)).toEqual(["l3-s2"]);
  expect(await stops(null, "h7")).toEqual(["h7"]);
  expect(await stops("gone", null)).toEqual(["l1-s1"]);

  const layout = layOut(view, 900);
  const rows = stopRows(linesOf(view, layout), layout);
  expect(rows.map((row) => row.length)).toEqual([leaves * spines, leaves * hosts, leaves * hosts]);
  const reached = new Set<Stop>();
  const walk = (from: Stop): void => {
    if (reached.has(from)) return;
    reached.add(from);
    for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]) {
      const next = moved(rows, from, key);
      if (next) walk(next);
    }
  };
  walk(rows[0]![0]!);
  expect(reached.size).toBe(rows.flat().length);
  const host = rows[2]![4]!;
  expect(moved(rows, host, "ArrowUp")?.name).toContain(host.name);
  expect(moved(rows, host, "End")).toBe(rows[2]!.at(-1));
  expect(moved(rows, host, "x")).toBeUndefined();
});

test("a fabric wider than the window is drawn at a legible size, and can be fitted", async () => {
  const nothing = () => undefined;
  const draw = (fabric: FabricView) =>
    drawn(
      createElement(FabricMap, {
        fabric,
        link: null,
        host: null,
        chooseLink: nothing,
        chooseHost: nothing,
        modal: false,
      }),
    );
  const wide = await draw(leafSpine(25, 40, 2));
  const [, least] = /min-width:(\d+)px/.exec(wide)!;
  expect(Number(least)).toBeGreaterThanOrEqual(40 * 60);
  expect(wide).toContain("Fit to window");
  const narrow = await draw(leafSpine(4, 4, 2));
  expect(narrow).not.toContain("Fit to window");

  const { hosts } = layOut(leafSpine(8, 4, 16), 900);
  const places = [...hosts.values()].map(({ x }) => x).sort((left, right) => left - right);
  const apart = places.slice(1).map((x, index) => x - places[index]!);
  expect(Math.min(...apart)).toBeGreaterThanOrEqual(33);
});

test("names of switches stay within their boxes, by their ends", () => {
  expect(["l1", "spine1", "0xaabbccddeeff", "spine-12"].map((name) => inBox(name, 6))).toEqual([
    "l1",
    "spine1",
    "…deeff",
    "…ne-12",
  ]);
});
