/** What lies under the pointer in a frame, in words. */

import { byteSize } from "../parts/units";
import { distance, endsOf, between, queueBar, queueMarks, type Scene } from "./geometry";
import type { Point } from "./layout";
import type { Link, Packet } from "./trace";

/** How far from the pointer it may be, px. */
const NEAR = 14;

const KIND_WORDS: Readonly<Record<Packet["kind"], string>> = {
  data: "data packet",
  acknowledgement: "acknowledgement",
  opening: "handshake packet",
  repair: "repair",
  feedback: "agents' feedback",
};

/** Return the packet or the queue that is nearest to *pointer*, in words; null: nothing is near. */
export function pointed(scene: Scene, pointer: Point): string | null {
  const { frame, trace } = scene;
  const away = (point: Point): number => Math.hypot(point.x - pointer.x, point.y - pointer.y);
  const near: { away: number; words: () => string }[] = [];
  for (const { packet, link, share } of frame.moving) {
    const ends = endsOf(scene, link);
    const on = trace.links[link];
    if (!ends || !on) continue;
    const words = (): string => `${packetWords(trace.packets[packet])}, ${way(on)}`;
    near.push({ away: away(between(ends, share)), words });
  }
  for (const [link, packets] of frame.waiting) {
    const bar = queueBar(scene, link, packets.length);
    const on = trace.links[link];
    if (!bar || !on) continue;
    const words = (): string => {
      const marks = queueMarks(bar.ends, packets).sort((left, right) => away(left.point) - away(right.point));
      const room = on.room > 0 ? ` of ${on.room}` : "";
      const here = marks[0] ? `; there: ${packetWords(trace.packets[marks[0].packet])}` : "";
      return `queue ${way(on)}: ${packets.length}${room} packets wait${here}`;
    };
    near.push({ away: distance(pointer, bar.ends), words });
  }
  const least = near.reduce<(typeof near)[number] | null>(
    (nearest, candidate) => (nearest === null || candidate.away < nearest.away ? candidate : nearest),
    null,
  );
  return least !== null && least.away <= NEAR * scene.scale ? least.words() : null;
}

const way = (link: Link): string => `from ${link.from} to ${link.to}`;

/** Return what a packet is: its kind, number, flow, class and size. */
function packetWords(packet: Packet | undefined): string {
  if (!packet) return "a packet";
  const { flow, kind, number, trafficClass, bytes } = packet;
  const size = byteSize(bytes);
  if (!flow) return `${KIND_WORDS[kind]} of no flow, ${size}`;
  const ofClass = trafficClass === "none" ? flow.trafficClass : trafficClass;
  return `${KIND_WORDS[kind]} ${number} of flow ${flow.id} (${flow.source} to ${flow.destination}, ${ofClass}), ${size}`;
}
