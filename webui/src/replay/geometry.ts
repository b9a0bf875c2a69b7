/** Where things of a recording are in a drawing of some size, px. */

import type { Frame } from "./frame";
import type { Point } from "./layout";
import type { Trace } from "./trace";

const MARGIN_X = 28;
const MARGIN_Y = 34;
/** Between the two directions of a link, px. */
const APART = 3;
/** Packets of a queue that are drawn. */
const MOST_MARKS = 12;
/** Where on its link a queue begins, and how much of the link a full one covers. */
const QUEUE_BEGIN = 0.08;
const QUEUE_LENGTH = 0.42;
/** Packets that a port holds, where that is not known. */
const USUAL_ROOM = 64;

export interface Scene {
  trace: Trace;
  places: ReadonlyMap<string, Point>;
  frame: Frame;
  width: number;
  height: number;
  /** By how much letters, marks and lines are enlarged (app/Appearance.tsx). */
  scale: number;
}

export type Ends = readonly [Point, Point];

/** Return where a node is; null: the recording has none of that name. */
export function placed(scene: Scene, name: string): Point | null {
  const place = scene.places.get(name);
  if (!place) return null;
  const [marginX, marginY] = [MARGIN_X * scene.scale, MARGIN_Y * scene.scale];
  return {
    x: marginX + place.x * (scene.width - 2 * marginX),
    y: marginY + place.y * (scene.height - 2 * marginY),
  };
}

/** Return where a direction of a link begins and ends, beside that of the other direction. */
export function endsOf(scene: Scene, link: number): Ends | null {
  const { from = "", to = "" } = scene.trace.links[link] ?? {};
  const [start, end] = [placed(scene, from), placed(scene, to)];
  if (!start || !end) return null;
  const share = (APART * scene.scale) / lengthOf([start, end]);
  const aside = { x: -(end.y - start.y) * share, y: (end.x - start.x) * share };
  return [
    { x: start.x + aside.x, y: start.y + aside.y },
    { x: end.x + aside.x, y: end.y + aside.y },
  ];
}

export function lengthOf([start, end]: Ends): number {
  return Math.hypot(end.x - start.x, end.y - start.y) || 1;
}

/** Return the point at *share* (0 to 1) of the way. */
export function between([start, end]: Ends, share: number): Point {
  return { x: start.x + (end.x - start.x) * share, y: start.y + (end.y - start.y) * share };
}

/** Return the bar of a queue of *packets* on its link, full at half of the link's length. */
export function queueBar(scene: Scene, link: number, packets: number): { ends: Ends; filled: number } | null {
  const ends = endsOf(scene, link);
  if (!ends) return null;
  const room = scene.trace.links[link]?.room || Math.max(USUAL_ROOM, packets);
  const filled = QUEUE_BEGIN + Math.min(1, packets / room) * QUEUE_LENGTH;
  return { ends: [between(ends, QUEUE_BEGIN), between(ends, filled)], filled };
}

/** Return those of a queue's packets that are drawn, with the point of each. */
export function queueMarks(bar: Ends, packets: readonly number[]): { packet: number; point: Point }[] {
  const drawn = packets.slice(0, MOST_MARKS);
  return drawn.map((packet, place) => ({ packet, point: between(bar, (place + 0.5) / drawn.length) }));
}

/** Return how far *point* is from the line between *ends*, px. */
export function distance(point: Point, [start, end]: Ends): number {
  const [dx, dy] = [end.x - start.x, end.y - start.y];
  const along = ((point.x - start.x) * dx + (point.y - start.y) * dy) / (dx * dx + dy * dy || 1);
  const nearest = between([start, end], Math.min(1, Math.max(0, along)));
  return Math.hypot(point.x - nearest.x, point.y - nearest.y);
}
