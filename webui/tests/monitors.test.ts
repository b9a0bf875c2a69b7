import { expect, test } from "vitest";
import { KEPT_S, type Row, withView } from "../src/capton/grantRows";
import type { CaptonFlow, CaptonView, FabricView, QueuesView } from "../src/api/schema";
import type { LinksSample } from "../src/api/types";
import { LinkHistory, type LinkPoint } from "../src/live/linkHistory";
import { fullest, portQueues, waiting, waitingOnly } from "../src/queues/rows";
import { structureOf } from "../src/charts/TimeChart";
import { cut, fitting, labelRoom, roundValues } from "../src/charts/ticks";
import { marks } from "../src/tpfs/thresholds";
import { typeName } from "../src/tpfs/types";

const grant = (flow: number, state: CaptonFlow["state"], ago = 0): CaptonFlow => ({
  flow,
  source: "h1",
  destination: "h5",
  state,
  rate_bps: state === "granted" ? 5e6 : 0,
  remaining_bytes: 1,
  asked_bytes: 2,
  asked_s_ago: ago,
  path: null,
});

const view = (...flows: CaptonFlow[]): CaptonView => ({
  enabled: true,
  scheme: "capton",
  paths: "all",
  totals: { granted_flows: 0, waiting_flows: 0, granted_bps: 0, remaining_bytes: 0 },
  flows,
  links: [],
  counters: {},
  hosts: [],
  latency: { count: 0, median_us: null, p99_us: null, buckets: [] },
});

test("a flow waits from when it asked, then has a bar while it may send", () => {
  let rows: Row[] = withView([], view(grant(1, "waiting", 3)), 100, 1);
  rows = withView(rows, view(grant(1, "granted", 4)), 101, 1);
  rows = withView(rows, view(grant(1, "granted", 5)), 102, 1);
  expect(rows[0]?.spans).toEqual([
    { from: 97, to: 100, state: "waiting", rate: 0 },
    { from: 100, to: 102, state: "granted", rate: 5e6 },
  ]);
});

test("what ended long ago is left out, and a pause is no bar", () => {
  let rows: Row[] = withView([], view(grant(1, "granted")), 100, 1);
  rows = withView(rows, view(), 105, 1);
  expect(rows.length).toBe(1);
  rows = withView(rows, view(grant(1, "granted", 0)), 110, 1);
  expect(rows[0]?.spans.length).toBe(2);
  expect(withView(rows, view(), 110 + KEPT_S + 1, 1)).toEqual([]);
});

test("a flow to another host under the number of one before has a row of its own", () => {
  const rows = withView([], view(grant(1, "granted")), 100, 1);
  const other = { ...grant(1, "granted"), destination: "h6" };
  expect(withView(rows, view(other), 101, 1).map(({ name }) => name)).toEqual(["h1 → h5 #1", "h1 → h6 #1"]);
});

test("queues are listed by direction, the fullest port first", () => {
  const queue = (number: number, packets: number) => ({
    queue: number,
    waiting_packets: packets,
    bits_per_s: 0,
    dropped_per_s: 0,
  });
  const load = (...queues: ReturnType<typeof queue>[]) => ({
    bits_per_s: 0,
    packets_per_s: 0,
    share: null,
    queued_packets: null,
    dropped_per_s: null,
    queues,
  });
  const sample: LinksSample = {
    at: 1,
    interval_s: 1,
    links: [
      {
        name: "l1-s1",
        kind: "fabric",
        up: true,
        rate_kbps: 1,
        ab: load(queue(0, 1)),
        ba: load(queue(0, 2), queue(1, 7)),
      },
      { name: "l1-s2", kind: "fabric", up: true, rate_kbps: 1, ab: load(), ba: null },
    ],
  };
  const rows = portQueues(sample, undefined);
  expect(rows.map((row) => [row.direction, waiting(row)])).toEqual([
    ["s1 → l1", 9],
    ["l1 → s1", 1],
  ]);
});

test("a type is called by what its flows have in common", () => {
  const type = {
    flows: 1,
    values: [
      ["h1", "5601"],
      ["h2", "5601"],
    ],
    thresholds_bytes: [],
    mean_bytes: 1,
    median_bytes: 1,
    p90_bytes: 1,
    cdf: [],
    queue_bytes: [],
  };
  expect(typeName(type, ["source", "destination_port"], 1)).toBe(
    "source / destination port h1 / 5601 and 1 more",
  );
});

test("thresholds that would lie upon each other are one mark", () => {
  expect(marks([10, 20, 25, 60, 60, 60], (bytes) => bytes, 8)).toEqual([
    { label: "1", at: 10, from: 10, to: 10 },
    { label: "2–3", at: 22.5, from: 20, to: 25 },
    { label: "4–6", at: 60, from: 60, to: 60 },
  ]);
  expect(marks([], (bytes) => bytes, 8)).toEqual([]);
});

test("a short logarithmic axis has ticks, too", () => {
  expect(roundValues(14_800, 45_000)).toEqual([20_000, 30_000, 40_000]);
  expect(roundValues(1, 100)).toEqual([1, 2, 5, 10, 20, 50, 100]);
});

test("labels that would touch are left out", () => {
  const wide = () => 40;
  expect(fitting([0, 30, 60, 120], (place) => place, wide, 10)).toEqual([0, null, 60, 120]);
  expect(fitting([], (place) => place, wide, 10)).toEqual([]);
});

const load = (packets: number | null) => ({
  bits_per_s: 0,
  packets_per_s: 0,
  share: null,
  queued_packets: packets,
  dropped_per_s: null,
  queues: [],
});
const link = (name: string, ab: number | null, ba: number | null) => ({
  name,
  kind: "fabric" as const,
  up: true,
  rate_kbps: 1,
  ab: load(ab),
  ba: load(ba),
});

test("the ports that were fullest in the last minute are charted, though they have drained since", () => {
  const history = new LinkHistory();
  const samples: LinksSample[] = [
    { at: 1, interval_s: 1, links: [link("l1-s1", 9, 0), link("l1-s2", 1, null)] },
    { at: 2, interval_s: 1, links: [link("l1-s1", 0, 4), link("l1-s2", 2, null), link("l1-s3", 7, 0)] },
  ];
  for (const sample of samples) history.take(sample);
  expect(fullest(samples[1]!, history, undefined, 3)).toEqual([
    {
      name: "l1 → s1",
      points: [
        [1, 9],
        [2, 0],
      ],
    },
    {
      name: "l1 → s3",
      points: [
        [1, null],
        [2, 7],
      ],
    },
    {
      name: "s1 → l1",
      points: [
        [1, 0],
        [2, 4],
      ],
    },
  ]);
});

test("ports of links between the same switches, and of one name on several, are kept apart", () => {
  const between = (name: string, port: number): FabricView["links"][number] => ({
    name,
    kind: "fabric",
    a: { switch: "l1", port },
    b: { switch: "s1", port },
    up: true,
    speed_kbps: 0,
    rate_kbps: null,
  });
  const parallel = [between("l1-s1", 1), between("l1-s1:7", 7)];
  const fabric: FabricView = { switches: [], links: parallel, hosts: [], scheme: "caps", settled: true };
  const queue = { queue: 0, waiting_packets: 1, bits_per_s: 0, dropped_per_s: 0 };
  const links = parallel.map(({ name }) => ({ ...link(name, 1, null), ab: { ...load(1), queues: [queue] } }));
  const sample: LinksSample = { at: 1, interval_s: 1, links };
  const rows = portQueues(sample, fabric);
  expect(rows.map((row) => row.direction)).toEqual(["l1 → s1", "l1 → s1:7"]);
  expect(new Set(rows.map((row) => row.key)).size).toBe(2);
  const history = new LinkHistory();
  history.take(sample);
  expect(fullest(sample, history, fabric, 4).map(({ name }) => name)).toEqual(["l1 → s1", "l1 → s1:7"]);

  const counter = { queue: 0, waiting_packets: 1, waiting_bytes: 1, dropped_packets: 0, sent_packets: 0 };
  const port = (name: string): QueuesView["switches"][number]["ports"][number] => ({
    port: 1,
    name,
    by: "writer",
    queues: 1,
    buffer_packets: null,
    rate_bps: null,
    in_force: true,
    problem: "",
    limits: [],
    counters: [{ ...counter, sent_bytes: 0 }],
  });
  const on = (name: string, ...ports: string[]): QueuesView["switches"][number] => ({
    switch: name,
    datapath: "system",
    in_force: true,
    problems: [],
    counted_s_ago: 0,
    ports: ports.map(port),
  });
  const view: QueuesView = {
    wanted: { number: 1, buffer_packets: null },
    switches: [on("l1", "eth1", "l1-eth2"), on("s1", "eth1")],
  };
  const ports = waitingOnly(view);
  expect(ports.map((row) => row.direction)).toEqual(["l1 eth1", "l1-eth2", "s1 eth1"]);
  expect(new Set(ports.map((row) => row.key)).size).toBe(3);
});

/** A history that counts how often times of its points are read. */
class Counted extends LinkHistory {
  reads = 0;
  override of(link: string): readonly LinkPoint[] {
    const count = (): void => void (this.reads += 1);
    return super.of(link).map((point) => ({
      ...point,
      get at() {
        count();
        return point.at;
      },
    }));
  }
}

test("of a thousand links only the points of charted ports are gone through for each sample", () => {
  const links = Array.from({ length: 1000 }, (_, index) => link(`l${index}-s1`, index, 0));
  const history = new Counted();
  for (const at of [1, 2, 3]) history.take({ at, interval_s: 1, links });
  const ports = fullest({ at: 3, interval_s: 1, links }, history, undefined, 4);
  expect(ports.map(({ name }) => name)).toEqual(["l996 → s1", "l997 → s1", "l998 → s1", "l999 → s1"]);
  expect(history.reads).toBeLessThan(100);
});

test("long labels leave room for the bars beside them", () => {
  expect(labelRoom(["ecmp", "caps"], 1, 600)).toEqual({ margin: 48, letters: 4 });
  const long = "CAPS with two repairs a unit of sixteen packets, no mode of a leaf";
  for (const scale of [1, 1.3]) {
    const { margin, letters } = labelRoom([long, "ecmp"], scale, 420);
    expect(margin).toBeLessThanOrEqual(0.5 * 420);
    expect(letters * 8 * scale).toBeLessThan(margin);
    expect(cut(long, letters)).toMatch(/^CAPS with.*…$/);
    expect(cut(long, letters)).toHaveLength(letters);
  }
  expect(labelRoom([], 1, 600).letters).toBe(0);
});

test("a chart is made anew for other lines or bounds, not for a longer span", () => {
  const chart = { title: "Rate", series: [{ name: "l1 → s1", points: [] }], from: 0, to: 1, atLeast: 8 };
  const structure = (more: object): string => structureOf({ ...chart, format: String, ...more });
  expect(structure({ to: 2 })).toBe(structure({}));
  expect(structure({ atLeast: 9 })).not.toBe(structure({}));
  expect(structure({ series: [] })).not.toBe(structure({}));
});
