import { describe as suite, expect, it } from "vitest";
import { describe } from "../src/replay/describe";
import { draw } from "../src/replay/draw";
import { Replay } from "../src/replay/frame";
import { places } from "../src/replay/layout";
import { pointed } from "../src/replay/pointed";
import { released } from "../src/replay/releases";
import { parseTrace } from "../src/replay/trace";
import { MS, recording } from "./recording";

const LETTER = 7;

/** What was drawn on a canvas of no pixels: each call with the font and line width that it had. */
function drawing(scale: number, at: number, made = recording()) {
  const calls: { name: string; args: unknown[]; font: string; lineWidth: number }[] = [];
  const state: Record<string, unknown> = { font: "", lineWidth: 1 };
  const context = new Proxy(state, {
    get: (target, name: string) =>
      name in target
        ? target[name]
        : (...args: unknown[]) => {
            calls.push({ name, args, font: String(target["font"]), lineWidth: Number(target["lineWidth"]) });
            return name === "measureText" ? { width: LETTER * String(args[0]).length * scale } : undefined;
          },
  }) as unknown as CanvasRenderingContext2D;
  const trace = parseTrace(made);
  const frame = new Replay(trace).frame(at);
  const scene = { trace, places: places(trace), frame, width: 900 * scale, height: 500 * scale, scale };
  const colours: string[] = [];
  const colour = (name: string): string => {
    colours.push(name);
    return name;
  };
  draw(context, { ...scene, flow: null, colour });
  return { calls, colours, scene };
}

const pixels = (font: string): number => Number.parseFloat(font);

suite("a frame", () => {
  it("reads each colour of the page once, however many packets it has", () => {
    const { colours } = drawing(1, 0.6 * MS);
    expect(colours.length).toBeGreaterThan(3);
    expect(new Set(colours).size).toBe(colours.length);
  });
});

suite("on a projector", () => {
  const SCALE = 1.3;
  // Two packets wait and one is on its way.
  const [usual, large] = [drawing(1, 0.6 * MS).calls, drawing(SCALE, 0.6 * MS).calls];

  it("letters are larger by its scale", () => {
    const fonts = (of: typeof usual) =>
      of.filter(({ name }) => name === "fillText").map(({ font }) => pixels(font));
    expect(fonts(usual)).toEqual([11, 12, 12, 12]);
    expect(fonts(large)).toEqual(fonts(usual).map((size) => size * SCALE));
  });

  it("so are marks, lines and boxes, and where they are", () => {
    const of = (name: string, calls: typeof usual) => calls.filter((call) => call.name === name);
    for (const name of ["arc", "roundRect", "moveTo", "lineTo"]) {
      const drawn = of(name, usual);
      expect(drawn.length).toBeGreaterThan(0);
      drawn.forEach(({ args }, place) => {
        const lengths = name === "arc" ? 3 : args.length; // angles have no scale
        args.slice(0, lengths).forEach((length, index) => {
          expect(of(name, large)[place]?.args[index]).toBeCloseTo(Number(length) * SCALE, 9);
        });
      });
    }
    of("stroke", usual).forEach(({ lineWidth }, place) => {
      expect(of("stroke", large)[place]?.lineWidth).toBeCloseTo(lineWidth * SCALE, 9);
    });
  });
});

suite("under the pointer", () => {
  it("is the nearest packet: its kind, number, flow and class", () => {
    const { scene } = drawing(1, 2 * MS);
    // Half of the way down from l1 at the top to h2 at the bottom right: places of 900 px by 500 px.
    const middle = { x: (450 + (28 + 0.75 * (900 - 56))) / 2, y: 250 };
    expect(pointed(scene, middle)).toBe("data packet 1 of flow 7 (h1 to h2, long), 1.50 kB, from l1 to h2");
    expect(pointed(scene, { x: 10, y: 10 })).toBeNull();
  });

  it("is the queue of a port, with what it holds", () => {
    const { scene } = drawing(1, 0.6 * MS);
    // A fifth of the way up from h1 at the bottom left.
    const host = { x: 28 + 0.25 * (900 - 56), y: 500 - 34 };
    const near = { x: host.x + 0.2 * (450 - host.x), y: host.y + 0.2 * (34 - host.y) };
    expect(pointed(scene, near)).toMatch(
      /^queue from h1 to l1: 2 of 2 packets wait; there: repair 1 of flow 7 \(h1 to h2, short\), 1.50 kB$/,
    );
  });
});

suite("what agents hand to their hosts", () => {
  // Packet 1 comes to h2 at 3 ms; packet 2 never does.
  const made = () => ({
    ...recording(),
    releases: { at_ps: [1.5 * MS, 1.5 * MS, 0.5 * MS], flow: [0, 0, 0], number: [1, 1, 2], kind: [0, 0, 0] },
  });

  it("is rebuilt where it had not come yet, or never comes", () => {
    expect(released(parseTrace(made())).map(({ at, rebuilt }) => [at, rebuilt])).toEqual([
      [1.5 * MS, true],
      [3 * MS, false],
      [3.5 * MS, true],
    ]);
  });

  it("is not called rebuilt where its packet was sent before the recording", () => {
    const { releases, ...rest } = made();
    const early = { ...releases, number: [8, 1, 2] }; // of packet 8 the recording has no hop
    expect(released(parseTrace({ ...rest, releases: early })).map(({ rebuilt }) => rebuilt)).toEqual([
      false,
      false,
      true,
    ]);
  });

  it("is shown for a moment, and counted", () => {
    const trace = parseTrace(made());
    const replay = new Replay(trace);
    expect(replay.frame(1.5 * MS).releases).toMatchObject([{ number: 1, rebuilt: true, age: 0 }]);
    expect(replay.frame(1.5 * MS + replay.dropPs).releases).toEqual([]);
    expect([1.4, 3.4, 3.5].map((ms) => replay.frame(ms * MS).rebuilt)).toEqual([0, 1, 2]);
    expect(describe(trace, replay.frame(3.5 * MS))).toContain("2 packets rebuilt so far");
  });

  it("is drawn below its host: a triangle for what was rebuilt, else a ring", () => {
    const host = { x: 28 + 0.75 * (900 - 56), y: 500 - 34 };
    const [rebuilt, plain] = [drawing(1, 1.5 * MS, made()).calls, drawing(1, 3 * MS, made()).calls];
    const below = (calls: typeof plain, name: string) =>
      calls.filter(
        ({ name: of, args }) =>
          of === name && Math.abs(Number(args[0]) - host.x) < 15 && Number(args[1]) > host.y,
      );
    expect([below(rebuilt, "moveTo").length, below(rebuilt, "arc").length]).toEqual([1, 0]);
    expect([below(plain, "moveTo").length, below(plain, "arc").length]).toEqual([0, 1]);
  });
});
