/** A frame on a canvas: links, what waits at their ports, packets on their way, and what is dropped. */

import { between, endsOf, lengthOf, placed, queueBar, queueMarks, type Scene } from "./geometry";
import type { Point } from "./layout";
import type { Packet } from "./trace";

/** Half of the height of a node's box, px. */
const NODE_HALF = 9;
/** Of packets of other flows than the chosen one: how much of their colour. */
const ASIDE = 0.15;
export const RELEASED = "--quiet";
export const REBUILT = "--good";

/** What a packet is drawn as. */
export interface Mark {
  shape: "circle" | "diamond" | "dot" | "square";
  /** A colour's name in page.css. */
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

export interface Drawing extends Scene {
  /** Its packets alone are drawn in full colour; null: all are. */
  flow: number | null;
  colour: (name: string) => string;
}

export function draw(context: CanvasRenderingContext2D, asked: Drawing): void {
  const drawing = { ...asked, colour: onceEach(asked.colour) };
  context.clearRect(0, 0, drawing.width, drawing.height);
  drawLinks(context, drawing);
  drawQueues(context, drawing);
  for (const { packet, link, share } of drawing.frame.moving) {
    const ends = endsOf(drawing, link);
    if (ends) drawMark(context, drawing, packet, between(ends, share));
  }
  drawDrops(context, drawing);
  drawNodes(context, drawing);
  drawReleases(context, drawing);
}

/** Return *colour* that is read from the page once a name: a frame may have thousands of packets. */
function onceEach(colour: (name: string) => string): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const value = known.get(name) ?? colour(name);
    known.set(name, value);
    return value;
  };
}

function drawLinks(context: CanvasRenderingContext2D, drawing: Drawing): void {
  context.lineWidth = drawing.scale;
  drawing.trace.links.forEach(({ bps }, link) => {
    const ends = endsOf(drawing, link);
    if (!ends) return;
    context.strokeStyle = drawing.colour(bps > 0 ? "--u0" : "--bad");
    context.setLineDash(bps > 0 ? [] : [3 * drawing.scale, 4 * drawing.scale]);
    context.beginPath();
    context.moveTo(ends[0].x, ends[0].y);
    context.lineTo(ends[1].x, ends[1].y);
    context.stroke();
  });
  context.setLineDash([]);
}

/** Draw what waits at each port as a bar along its link, full at half of the link's length, and its number. */
function drawQueues(context: CanvasRenderingContext2D, drawing: Drawing): void {
  const { scale } = drawing;
  context.font = font(11, scale);
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [link, packets] of drawing.frame.waiting) {
    const bar = queueBar(drawing, link, packets.length);
    const ends = endsOf(drawing, link);
    if (!bar || !ends) continue;
    const [begin, end] = bar.ends;
    context.strokeStyle = drawing.colour("--queue");
    context.lineWidth = 6 * scale;
    context.beginPath();
    context.moveTo(begin.x, begin.y);
    context.lineTo(end.x, end.y);
    context.stroke();
    for (const { packet, point } of queueMarks(bar.ends, packets)) drawMark(context, drawing, packet, point);
    if (packets.length > 1) {
      // Beyond the queue's end, where queues of one switch are apart.
      const beyond = between(ends, bar.filled + (14 * scale) / lengthOf(ends));
      context.fillStyle = drawing.colour("--ink");
      context.fillText(String(packets.length), beyond.x, beyond.y);
    }
  }
}

function drawDrops(context: CanvasRenderingContext2D, drawing: Drawing): void {
  context.strokeStyle = drawing.colour("--bad");
  context.lineWidth = 2 * drawing.scale;
  for (const { link, age } of drawing.frame.drops) {
    const ends = endsOf(drawing, link);
    if (!ends) continue;
    const { x, y } = between(ends, 0.06);
    const size = (5 + 4 * age) * drawing.scale;
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

function drawNodes(context: CanvasRenderingContext2D, drawing: Drawing): void {
  const { scale } = drawing;
  context.font = font(12, scale);
  context.textAlign = "center";
  context.textBaseline = "middle";
  const leaves = [...drawing.places.keys()].filter((name) => /^[le]/.test(name));
  for (const name of drawing.places.keys()) {
    const place = placed(drawing, name);
    if (!place) continue;
    const mode = drawing.frame.modes.get(Number(name.slice(1)) - 1);
    const isLeaf = leaves.includes(name) && mode !== undefined;
    const text = isLeaf ? `${name} ${mode ? "ON" : "OFF"}` : name;
    const half = context.measureText(text).width / 2 + 5 * scale;
    context.fillStyle = drawing.colour(isLeaf && mode ? "--on" : "--card");
    context.strokeStyle = drawing.colour("--quiet");
    context.lineWidth = scale;
    context.beginPath();
    context.roundRect(
      place.x - half,
      place.y - NODE_HALF * scale,
      2 * half,
      2 * NODE_HALF * scale,
      4 * scale,
    );
    context.fill();
    context.stroke();
    context.fillStyle = drawing.colour(isLeaf && mode ? "--on-ink" : "--ink");
    context.fillText(text, place.x, place.y + 0.5 * scale);
  }
}

function drawMark(
  context: CanvasRenderingContext2D,
  drawing: Drawing,
  number: number,
  { x, y }: Point,
): void {
  const packet = drawing.trace.packets[number];
  const mark = packet && MARKS[markOf(packet)];
  if (!packet || !mark) return;
  context.globalAlpha = drawing.flow === null || packet.flow?.id === drawing.flow ? 1 : ASIDE;
  drawShape(context, mark.shape, { x, y }, drawing.scale, drawing.colour(mark.colour));
  context.globalAlpha = 1;
}

function drawShape(
  context: CanvasRenderingContext2D,
  shape: Mark["shape"],
  { x, y }: Point,
  scale: number,
  colour: string,
): void {
  context.fillStyle = colour;
  context.beginPath();
  if (shape === "square") context.rect(x - 2 * scale, y - 2 * scale, 4 * scale, 4 * scale);
  else if (shape === "diamond") {
    context.moveTo(x, y - 6 * scale);
    context.lineTo(x + 6 * scale, y);
    context.lineTo(x, y + 6 * scale);
    context.lineTo(x - 6 * scale, y);
  } else context.arc(x, y, (shape === "dot" ? 2 : 4) * scale, 0, 2 * Math.PI);
  context.fill();
}

/** Draw, below each host, what its agent has just handed to it: a ring, and for a rebuilt packet a triangle. */
function drawReleases(context: CanvasRenderingContext2D, drawing: Drawing): void {
  const { scale } = drawing;
  context.lineWidth = 1.5 * scale;
  for (const { flow, rebuilt, age } of drawing.frame.releases) {
    const host = placed(drawing, flow.destination);
    if (!host) continue;
    const [x, y] = [host.x + (rebuilt ? 9 : -9) * scale, host.y + (NODE_HALF + 9) * scale];
    context.globalAlpha = (1 - age) * (drawing.flow === null || flow.id === drawing.flow ? 1 : ASIDE);
    context.beginPath();
    if (rebuilt) {
      context.moveTo(x, y - 7 * scale);
      context.lineTo(x + 7 * scale, y + 6 * scale);
      context.lineTo(x - 7 * scale, y + 6 * scale);
      context.fillStyle = drawing.colour(REBUILT);
      context.fill();
    } else {
      context.arc(x, y, (3 + 3 * age) * scale, 0, 2 * Math.PI);
      context.strokeStyle = drawing.colour(RELEASED);
      context.stroke();
    }
  }
  context.globalAlpha = 1;
}

const font = (px: number, scale: number): string => `${px * scale}px system-ui, sans-serif`;
