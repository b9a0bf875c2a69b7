import { readFileSync } from "node:fs";
import { createElement } from "react";
import { describe as suite, expect, it } from "vitest";
import { recordingPath, replayAddress } from "../src/replay/address";
import { fromAddress, inAddress, SPEEDS, usualSpeed } from "../src/replay/clock";
import { Controls } from "../src/replay/Controls";
import { describe } from "../src/replay/describe";
import { markOf } from "../src/replay/draw";
import { Replay } from "../src/replay/frame";
import { LastAsked } from "../src/replay/lastAsked";
import { places } from "../src/replay/layout";
import { FlowChoice } from "../src/replay/ReplayView";
import { parseTrace, readTrace, TraceError } from "../src/replay/trace";
import { frameMs, isDue } from "../src/replay/usePlayback";
import { drawn } from "./drawn";
import { MS, recording } from "./recording";

suite("a recording of a run on switches", () => {
  it("has packets at the far end when they were seen there", () => {
    const made = recording();
    const hops = { ...made.hops, flight_ps: [0.25 * MS, MS, 0, 0.5 * MS, 0] };
    const trace = parseTrace({ ...made, hops, switches: { unplaced_drops: 0, left_out: 0 } });
    expect(trace.hops.map(({ arrived }) => arrived)).toEqual([0.25 * MS, 2 * MS, null, MS + 0.5 * MS, null]);
  });

  it("says how many packets were dropped at ports that are not known", () => {
    const made = recording();
    const hops = { ...made.hops, flight_ps: [0.25 * MS, MS, 0, 0.5 * MS, 0] };
    const trace = parseTrace({ ...made, hops, switches: { unplaced_drops: 3, left_out: 0 } });
    expect(describe(trace, new Replay(trace).frame(0.75 * MS))).toContain(
      "1 packet dropped so far; 3 more in the window, at ports that are not known;",
    );
  });

  it("is damaged without their number", () => {
    const made = recording();
    const hops = { ...made.hops, flight_ps: [0.25 * MS, MS, 0, 0.5 * MS, 0] };
    expect(() => parseTrace({ ...made, hops, switches: { left_out: 0 } })).toThrow("switches.unplaced_drops");
  });

  it("is damaged without a column of these times", () => {
    const switches = { unplaced_drops: 0, left_out: 0 };
    expect(() => parseTrace({ ...recording(), switches })).toThrow(TraceError);
  });
});

suite("a frame", () => {
  const trace = parseTrace(recording());
  const replay = new Replay(trace);

  it("has packets on links by the share that they have come", () => {
    expect(replay.frame(0.25 * MS).moving).toEqual([{ packet: 0, link: 0, share: 0.25 }]);
    expect(replay.frame(2.0 * MS).moving).toEqual([{ packet: 0, link: 1, share: 0.5 }]);
    expect(replay.frame(3.5 * MS).moving).toEqual([]);
  });

  it("has what waits until it leaves", () => {
    expect(replay.frame(0.25 * MS).waiting).toEqual(new Map([[0, [1]]]));
    expect(replay.frame(0.6 * MS).waiting).toEqual(new Map([[0, [1, 2]]]));
    expect(replay.frame(1.5 * MS).waiting).toEqual(new Map());
    expect(replay.frame(1.5 * MS).moving).toContainEqual({ packet: 1, link: 0, share: 0.5 });
  });

  it("shows a drop for a moment and counts it from then on", () => {
    const { drops, dropped } = replay.frame(0.75 * MS);
    expect(drops).toEqual([{ packet: 2, link: 0, age: 0 }]);
    expect([dropped, replay.frame(0.7 * MS).dropped]).toEqual([1, 0]);
    expect(replay.frame(0.76 * MS + replay.dropPs).drops).toEqual([]);
    expect(replay.frame(10 * MS).dropped).toBe(1);
  });

  it("knows the modes of leaves", () => {
    expect(replay.frame(2.9 * MS).modes).toEqual(new Map([[0, true]]));
    expect(replay.frame(3 * MS).modes).toEqual(new Map([[0, false]]));
  });

  it("steps from packet to packet and ends at the window's ends", () => {
    expect(replay.next(0)).toBe(0.5 * MS);
    expect(replay.next(0.5 * MS)).toBe(1 * MS);
    expect(replay.next(9.5 * MS)).toBe(10 * MS);
    expect(replay.previous(1 * MS)).toBe(0.5 * MS);
    expect(replay.previous(0)).toBe(0);
  });

  it("holds each packet at one place at most, at any instant", () => {
    for (let at = 0; at <= 10 * MS; at += 0.05 * MS) {
      const { moving, waiting } = replay.frame(at);
      const all = [...moving.map(({ packet }) => packet), ...[...waiting.values()].flat()];
      expect(new Set(all).size).toBe(all.length);
    }
  });

  it("is said in words with units", () => {
    expect(describe(trace, replay.frame(0.6 * MS))).toBe(
      "1 packet on links; 2 waiting; longest queue: h1 to l1, 2 of 2 packets; 0 packets dropped so far; 1 of 1 leaf ON.",
    );
  });
});

suite("a recording", () => {
  it("gives each kind of packet a mark of its own", () => {
    const { packets } = parseTrace(recording());
    expect(packets.map(markOf)).toEqual(["long", "repair", "long", "feedback"]);
  });

  it("is read from gzip", async () => {
    const text = new Blob([JSON.stringify(recording())]).stream();
    const file = await new Response(text.pipeThrough(new CompressionStream("gzip"))).blob();
    expect((await readTrace(file)).flows[0]).toEqual({
      id: 7,
      source: "h1",
      destination: "h2",
      bytes: null,
      trafficClass: "long",
    });
  });

  it("is refused where it is damaged, with the place", async () => {
    await expect(readTrace(new Blob(["no gzip"]))).rejects.toThrow("it is not gzip");
    const refused = (change: (of: ReturnType<typeof recording>) => void, words: string): void => {
      const document = recording();
      change(document);
      expect(() => parseTrace(document)).toThrow(TraceError);
      expect(() => parseTrace(document)).toThrow(words);
    };
    refused((of) => (of.version = 2), "version 2");
    refused((of) => of.hops.link.pop(), "columns of hops are missing or differ");
    refused((of) => (of.hops.packet[1] = 99), "hops.packet names row 99 of 4");
    refused((of) => (of.packets.kind[0] = 8), "packets.kind names row 8");
  });

  it("has a row of nodes for each tier, switches above hosts", () => {
    const where = places(parseTrace(recording()));
    expect(where.get("l1")).toEqual({ x: 0.5, y: 0 });
    expect([where.get("h1")?.y, where.get("h2")?.y]).toEqual([1, 1]);
    expect(where.get("h1")!.x).toBeLessThan(where.get("h2")!.x);
  });
});

suite("a moment in the address", () => {
  it("is the run's time in ms, back and forth", () => {
    for (const at of [0, 1e3, 123_456_000, 9_999_999_000]) {
      expect(fromAddress(inAddress(at, 5 * MS), 5 * MS, 10 * MS)).toBe(at);
    }
    expect(inAddress(1.5 * MS, 5 * MS)).toBe("6.5");
    for (const at of [0, 123_456_789, 10 * MS - 1]) {
      expect(fromAddress(inAddress(at, 5 * MS + 499), 5 * MS + 499, 10 * MS - 1)).toBe(at);
    }
  });

  it("is none outside of the recording", () => {
    for (const text of [null, "", "x", "4.9", "15.1"]) {
      expect(fromAddress(text, 5 * MS, 10 * MS)).toBeNull();
    }
  });

  it("plays at a speed that takes half a minute or less", () => {
    expect(usualSpeed(1e12)).toBe(0.1);
    expect(usualSpeed(1e9)).toBe(1e-4);
    expect(SPEEDS).toContain(usualSpeed(1e15));
  });
});

it("draws in colours that every appearance has", () => {
  const source = (name: string): string => readFileSync(new URL(`../src/${name}`, import.meta.url), "utf8");
  const [light = "", dark = ""] = source("style/page.css").split(':root[data-mantine-color-scheme="dark"]');
  const names = [...source("replay/draw.ts").matchAll(/"(--[a-z0-9-]+)"/g)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(5);
  for (const appearance of [light, dark]) {
    expect(names.filter((name) => !appearance.includes(`${name}:`))).toEqual([]);
  }
});

suite("a run in the address", () => {
  it("is asked of the API by experiment and scheme", () => {
    const address = replayAddress(12, "caps λ=0.5&x", { from: 400, length: 50 });
    const search = new URLSearchParams(address.split("?")[1]);
    const path = recordingPath(search) ?? "";
    expect(path.startsWith("/experiments/12/recording?")).toBe(true);
    const asked = new URLSearchParams(path.split("?")[1]);
    expect(Object.fromEntries(asked)).toEqual({
      scheme: "caps λ=0.5&x",
      repeat: "1",
      from_ms: "400",
      for_ms: "50",
    });
  });

  it("has no window of a run on switches, where there is the recorded one alone", () => {
    expect(replayAddress(12, "caps")).toBe("/watch/replay?experiment=12&scheme=caps");
  });

  it("is of the first second where the address says no more", () => {
    const path = recordingPath(new URLSearchParams("experiment=12&scheme=caps")) ?? "";
    expect(new URLSearchParams(path.split("?")[1]).toString()).toBe(
      "scheme=caps&repeat=1&from_ms=0&for_ms=1000",
    );
  });

  it("is none without an experiment's number, or without a scheme", () => {
    for (const text of ["", "at=5", "experiment=3", "experiment=x&scheme=caps", "experiment=0&scheme=caps"]) {
      expect(recordingPath(new URLSearchParams(text))).toBeNull();
    }
  });
});

suite("a page that plays recordings", () => {
  it("shows the recording that was chosen last, however long others take to be read", async () => {
    const reading = new LastAsked();
    const shown: string[] = [];
    const answers: ((name: string) => void)[] = [];
    const ask = (): void =>
      reading.ask(
        new Promise<string>((resolve) => answers.push(resolve)),
        (name) => shown.push(name),
        () => shown.push("failed"),
      );
    ask();
    ask();
    reading.ask(Promise.reject(new Error("no gzip")), String, (error) => shown.push(String(error)));
    answers[1]?.("fetched");
    answers[0]?.("large file");
    await new Promise((resolve) => setTimeout(resolve));
    expect(shown).toEqual(["Error: no gzip"]);
  });

  it("does not draw its list of flows again for every frame", () => {
    expect(FlowChoice).toHaveProperty("$$typeof", Symbol.for("react.memo"));
  });

  it("goes on where it was after it was hidden for a minute", () => {
    expect(frameMs(null, 1000)).toBe(0);
    expect(frameMs(1000, 1016)).toBe(16);
    expect(frameMs(1016, 61_016)).toBeLessThanOrEqual(500);
  });

  it.each([60, 75, 120, 144])("is drawn about 30 times a second on a display of %i Hz", (hz) => {
    let before: number | null = null;
    let frames = 0;
    for (let frame = 0; frame < hz; frame++) {
      const now = (frame * 1000) / hz;
      if (!isDue(before, now)) continue;
      before = now;
      frames++;
    }
    expect(frames).toBeGreaterThanOrEqual(24);
    expect(frames).toBeLessThanOrEqual(36);
  });
});

it("plays without the time being spoken at every frame, and does not say that Pause is pressed", async () => {
  const replay = new Replay(parseTrace(recording()));
  const playback = { timePs: 0, playing: true, seek: () => undefined, toggle: () => undefined };
  const html = await drawn(
    createElement(Controls, { replay, playback, speed: 0.001, setSpeed: () => undefined }),
  );
  expect(html).toContain("Pause");
  expect(html).not.toContain("aria-pressed");
  expect(html).toMatch(/<output[^>]* aria-live="off"/);
});
