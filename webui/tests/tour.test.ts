import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { Replay } from "../src/replay/frame";
import { readTrace, type Trace } from "../src/replay/trace";
import {
  bytesByKind,
  clearPaths,
  inMode,
  lengthOf,
  loadByPath,
  order,
  pathsPerFlow,
  rebuilt,
  retransmitted,
  sent,
  waiting,
} from "../src/tour/facts";
import type { Recordings, SchemeName } from "../src/tour/recordings";
import { liveRun } from "../src/tour/live";
import { STEPS, stepOf } from "../src/tour/steps";

async function recording(scheme: SchemeName): Promise<Trace> {
  const file = new URL(`../src/tour/recordings/${scheme}.trace`, import.meta.url);
  return readTrace(new Blob([readFileSync(file)]));
}

let all: Recordings;
beforeAll(async () => {
  all = { ecmp: await recording("ecmp"), rps: await recording("rps"), caps: await recording("caps") };
});

/** Bytes of a long flow's packets. */
const WHOLE_PACKET = 1500;

const clear = (loads: ReadonlyMap<string, number>): number =>
  [...loads.values()].filter((bytes) => bytes === 0).length;

describe("the recordings show what the steps say", () => {
  it("under ECMP three long flows collide on one of four paths, in order", () => {
    const loads = loadByPath(all.ecmp, "long");
    expect([...loads.keys()]).toEqual(["s1", "s2", "s3", "s4"]);
    expect(clear(loads)).toBe(3);
    expect(order(all.ecmp, "long").behind).toBe(0);
  });

  it("under RPS all paths carry alike, and packets overtake", () => {
    const loads = [...loadByPath(all.rps, "long").values()];
    const sentUp = loads.map((bytes) => bytes / WHOLE_PACKET);
    const even = sentUp.reduce((sum, packets) => sum + packets, 0) / loads.length;
    // Drawn evenly, a path's number of packets is binomial: within three standard deviations of its share.
    const deviation = Math.sqrt(even * (1 - 1 / loads.length));
    for (const packets of sentUp) expect(Math.abs(packets - even)).toBeLessThan(3 * deviation);
    const { packets, behind } = order(all.rps, "long");
    expect(behind / packets).toBeGreaterThan(0.5);
    // Nothing is late under ECMP: what TCP retransmits there was dropped.
    const again = (trace: Trace): number => retransmitted(trace, "short") + retransmitted(trace, "long");
    const drops = (trace: Trace): number => trace.hops.filter(({ dropped }) => dropped).length;
    expect(again(all.ecmp)).toBeLessThanOrEqual(drops(all.ecmp));
    expect(again(all.rps)).toBeGreaterThan(drops(all.rps));
  });

  it("only CAPS sends repairs, and short packets are rebuilt by them", () => {
    expect([sent(all.ecmp, "short", "repair"), sent(all.rps, "short", "repair")]).toEqual([0, 0]);
    expect([rebuilt(all.ecmp, "short"), rebuilt(all.rps, "short")]).toEqual([0, 0]);
    expect(rebuilt(all.caps, "short")).toBeGreaterThan(0);
    expect(rebuilt(all.caps, "short")).toBeLessThanOrEqual(sent(all.caps, "short", "repair"));
    // Rebuilding is what helps, no shorter queues: its words say so.
    expect(waiting(all.caps, "short")).toBeGreaterThan(waiting(all.rps, "short"));
  });

  it("a leaf is ON and OFF in turn, and long flows keep to one path each while it is ON", () => {
    const [on, off] = [inMode(all.caps, 0, true), inMode(all.caps, 0, false)];
    expect(lengthOf(on) + lengthOf(off)).toBeCloseTo(all.caps.lengthPs / 1e12, 9);
    expect(pathsPerFlow(all.caps, on)).toBe(1);
    expect(pathsPerFlow(all.caps, off)).toBe(4);
    expect(clearPaths(all.caps, on)).toBeGreaterThan(clearPaths(all.caps, off));
  });

  it("repairs are bytes that hosts send", () => {
    expect(bytesByKind(all.rps).has("repair")).toBe(false);
    expect(bytesByKind(all.caps).get("repair")).toBeGreaterThan(0);
  });
});

describe("a step", () => {
  it.each(STEPS.map((step) => [step.title, step] as const))(
    "%s plays packets, and counts with units",
    (_, step) => {
      const trace = all[step.plays];
      const [from, to] = [step.from * 1e9, step.to * 1e9];
      expect(to).toBeLessThanOrEqual(trace.lengthPs);
      expect(step.at).toBeGreaterThanOrEqual(step.from);
      expect(step.at).toBeLessThan(step.to);
      expect(trace.hops.some(({ offered }) => from <= offered && offered < to)).toBe(true);
      if (step.flow !== null) {
        const ofFlow = trace.hops.filter(({ packet }) => trace.packets[packet]?.flow?.id === step.flow);
        expect(ofFlow.some(({ offered }) => from <= offered && offered < to)).toBe(true);
      }
      const counted = step.counted(all);
      for (const { name, cells } of counted?.rows ?? []) {
        expect(name).not.toBe("");
        expect(cells).toHaveLength(counted?.columns.length ?? 0);
      }
    },
  );

  /** What is there while a step does not play. */
  const still = (number: number) => {
    const step = STEPS[number - 1];
    if (!step) throw new Error(`there is no step ${number}`);
    const trace = all[step.plays];
    return { step, trace, frame: new Replay(trace).frame(step.at * 1e9) };
  };

  it("shows, standing still, a repair of its flow on its way and a packet rebuilt where it speaks of them", () => {
    const { step, trace, frame } = still(3);
    expect(step.title).toBe("Coding repairs");
    const onTheWay = frame.moving.map(({ packet }) => trace.packets[packet]);
    expect(onTheWay.some((packet) => packet?.kind === "repair" && packet.flow?.id === step.flow)).toBe(true);
    expect(frame.releases.some(({ flow, rebuilt }) => rebuilt && flow.id === step.flow)).toBe(true);
  });

  it("shows, standing still, a leaf ON where it speaks of leaves", () => {
    const { step, frame } = still(4);
    expect(step.title).toBe("Long flows step aside");
    expect(frame.modes.get(0)).toBe(true); // l1, which its words name
  });

  it("begins on switches what it plays, with as many long flows as the recording has", () => {
    const long = new Set(
      all.ecmp.packets.flatMap(({ flow }) => (flow?.trafficClass === "long" ? [flow.id] : [])),
    );
    for (const { plays } of STEPS) {
      expect(liveRun(plays, "lab")).toMatchObject({
        preset: "small",
        schemes: [plays],
        set: { "workload.long_flows.number": long.size },
      });
      expect(liveRun(plays, "lab")["kind"]).toBeUndefined();
      expect(liveRun(plays, "simulation")["kind"]).toBe("simulation");
    }
  });

  it.each([
    [null, 1],
    ["3", 3],
    ["7", 1],
    ["0", 1],
    ["two", 1],
    ["2.5", 1],
  ])("of the address %s is %i", (text, number) => expect(stepOf(text)).toBe(number));
});
