/** A frame on a canvas: links, what waits at their ports, packets on their way, and what is dropped. */

import type { Frame } from "./frame";
import type { Point } from "./layout";
import type { Packet, Trace } from "./trace";

const MARGIN_X = 28;
const MARGIN_Y = 34;
/** Between the two directions of a link, px. */
const APART = 3;
const MOST_MARKS = 12;

/** What a packet is drawn as. */
export interface Mark {
  shape: "circle" | "diamond" | "dot" | "square";
  /** A colour's name in base.css. */
  colour: string;
}

export const MARKS: Readonly<Record<string, Mark>> = {
  short: { shape: "circle", colour: "--series-0" },
  long: { shape: "circle", colour: "--series-1" },
  repair: { shape: "diamond", colour: "--chosen" },
  acknowledgement: { shape: "dot", colour: "--quiet" },
  feedback: { shape: "square", colour: "--quiet" },
};

/** Return the name of a packet's mark. */
export function markOf(packet: Packet): string {
  if (packet.kind === "repair" || packet.kind === "feedback") return packet.kind;
  if (packet.kind === "acknowledgement" || packet.kind === "opening") return "acknowledgement";
  const { trafficClass, flow } = packet;
  return (trafficClass === "none" ? flow?.trafficClass : trafficClass) === "long" ? "long" : "short";
}

export interface Scene {
  trace: Trace;
  places: ReadonlyMap<string, Point>;
  frame: Frame;
  width: number;
  height: number;
  /** Its packets alone are drawn in full colour; null: all are. */
  flow: number | null;
  colour: (name: string) => string;
}

export function draw(context: CanvasRenderingContext2D, scene: Scene): void {
  context.clearRect(0, 0, scene.width, scene.height);
  drawLinks(context, scene);
  drawQueues(context, scene);
  for (const { packet, link, share } of scene.frame.moving) {
    const ends = endsOf(scene, link);
    if (ends) drawMark(context, scene, packet, between(ends, share));
  }
  drawDrops(context, scene);
  drawNodes(context, scene);
}

type Ends = readonly [Point, Point];

/** Return where a direction of a link begins and ends, beside that of the other direction. */
function endsOf(scene: Scene, link: number): Ends | null {
  const { from = "", to = "" } = scene.trace.links[link] ?? {};
  const [start, end] = [placed(scene, from), placed(scene, to)];
  if (!start || !end) return null;
  const length = Math.hypot(end.x - start.x, end.y - start.y) || 1;
  const aside = { x: (-(end.y - start.y) / length) * APART, y: ((end.x - start.x) / length) * APART };
  return [
    { x: start.x + aside.x, y: start.y + aside.y },
    { x: end.x + aside.x, y: end.y + aside.y },
  ];
}

function placed(scene: Scene, name: string): Point | null {
  const place = scene.places.get(name);
  if (!place) return null;
  return {
    x: MARGIN_X + place.x * (scene.width - 2 * MARGIN_X),
    y: MARGIN_Y + place.y * (scene.height - 2 * MARGIN_Y),
  };
}

function lengthOf([start, end]: Ends): number {
  return Math.hypot(end.x - start.x, end.y - start.y) || 1;
}

function between([start, end]: Ends, share: number): Point {
  return { x: start.x + (end.x - start.x) * share, y: start.y + (end.y - start.y) * share };
}

function drawLinks(context: CanvasRenderingContext2D, scene: Scene): void {
  context.lineWidth = 1;
  scene.trace.links.forEach(({ bps }, link) => {
    const ends = endsOf(scene, link);
    if (!ends) return;
    context.strokeStyle = scene.colour(bps > 0 ? "--u0" : "--bad");
    context.setLineDash(bps > 0 ? [] : [3, 4]);
    context.beginPath();
    context.moveTo(ends[0].x, ends[0].y);
    context.lineTo(ends[1].x, ends[1].y);
    context.stroke();
  });
  context.setLineDash([]);
}

/** Draw what waits at each port as a bar along its link, full at half of the link's length, and its number. */
function drawQueues(context: CanvasRenderingContext2D, scene: Scene): void {
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [link, packets] of scene.frame.waiting) {
    const ends = endsOf(scene, link);
    if (!ends) continue;
    const room = scene.trace.links[link]?.room || Math.max(64, packets.length);
    const filled = 0.08 + Math.min(1, packets.length / room) * 0.42;
    const [begin, end] = [between(ends, 0.08), between(ends, filled)];
    context.strokeStyle = scene.colour("--queue");
    context.lineWidth = 6;
    context.beginPath();
    context.moveTo(begin.x, begin.y);
    context.lineTo(end.x, end.y);
    context.stroke();
    packets.slice(0, MOST_MARKS).forEach((packet, place) => {
      drawMark(
        context,
        scene,
        packet,
        between([begin, end], (place + 0.5) / Math.min(MOST_MARKS, packets.length)),
      );
    });
    if (packets.length > 1) {
      // Beyond the queue's end, where queues of one switch are apart.
      const beyond = between(ends, filled + 14 / lengthOf(ends));
      context.fillStyle = scene.colour("--ink");
      context.fillText(String(packets.length), beyond.x, beyond.y);
    }
  }
}

function drawDrops(context: CanvasRenderingContext2D, scene: Scene): void {
  context.strokeStyle = scene.colour("--bad");
  context.lineWidth = 2;
  for (const { link, age } of scene.frame.drops) {
    const ends = endsOf(scene, link);
    if (!ends) continue;
    const { x, y } = between(ends, 0.06);
    const size = 5 + 4 * age;
    context.globalAlpha = 1 - age;
    context.beginPath();
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y - size);
    context.lineTo(x - size, y + size);
    context.stroke();
  }
  context.globalAlpha = 1;
}

function drawNodes(context: CanvasRenderingContext2D, scene: Scene): void {
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  const leaves = [...scene.places.keys()].filter((name) => /^[le]/.test(name));
  for (const name of scene.places.keys()) {
    const place = placed(scene, name);
    if (!place) continue;
    const mode = scene.frame.modes.get(Number(name.slice(1)) - 1);
    const isLeaf = leaves.includes(name) && mode !== undefined;
    const text = isLeaf ? `${name} ${mode ? "ON" : "OFF"}` : name;
    const half = context.measureText(text).width / 2 + 5;
    context.fillStyle = scene.colour(isLeaf && mode ? "--on" : "--card");
    context.strokeStyle = scene.colour("--quiet");
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(place.x - half, place.y - 9, 2 * half, 18, 4);
    context.fill();
    context.stroke();
    context.fillStyle = scene.colour(isLeaf && mode ? "--on-ink" : "--ink");
    context.fillText(text, place.x, place.y + 0.5);
  }
}

function drawMark(context: CanvasRenderingContext2D, scene: Scene, number: number, { x, y }: Point): void {
  const packet = scene.trace.packets[number];
  const mark = packet && MARKS[markOf(packet)];
  if (!packet || !mark) return;
  context.globalAlpha = scene.flow === null || packet.flow?.id === scene.flow ? 1 : 0.15;
  drawShape(context, mark.shape, { x, y }, scene.colour(mark.colour));
  context.globalAlpha = 1;
}

export function drawShape(
  context: CanvasRenderingContext2D,
  shape: Mark["shape"],
  { x, y }: Point,
  colour: string,
): void {
  context.fillStyle = colour;
  context.beginPath();
  if (shape === "square") context.rect(x - 2, y - 2, 4, 4);
  else if (shape === "diamond") {
    context.moveTo(x, y - 6);
    context.lineTo(x + 6, y);
    context.lineTo(x, y + 6);
    context.lineTo(x - 6, y);
  } else context.arc(x, y, shape === "dot" ? 2 : 4, 0, 2 * Math.PI);
  context.fill();
}
