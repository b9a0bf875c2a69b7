/** A frame in words. */

import { count } from "../parts/units";
import type { Frame } from "./frame";
import type { Trace } from "./trace";

/** Return what a frame shows: packets on links, what waits, the longest queue, drops (those of unknown ports, too), what agents rebuilt, and leaves
 *  that are ON. */
export function describe(trace: Trace, frame: Frame): string {
  const queues = [...frame.waiting].sort(([, left], [, right]) => right.length - left.length);
  const waiting = queues.reduce((sum, [, packets]) => sum + packets.length, 0);
  const parts = [
    `${count(frame.moving.length, "packet")} on links`,
    `${waiting.toLocaleString("en-US")} waiting`,
  ];
  const [longest] = queues;
  const link = longest && trace.links[longest[0]];
  if (longest && link) {
    const room = link.room > 0 ? ` of ${link.room}` : "";
    parts.push(`longest queue: ${link.from} to ${link.to}, ${longest[1].length}${room} packets`);
  }
  parts.push(`${count(frame.dropped, "packet")} dropped so far`);
  if (trace.unplacedDrops > 0) {
    parts.push(
      `${trace.unplacedDrops.toLocaleString("en-US")} more in the window, at ports that are not known`,
    );
  }
  if (trace.releases.length > 0) parts.push(`${count(frame.rebuilt, "packet")} rebuilt so far`);
  const on = [...frame.modes].filter(([, isOn]) => isOn).length;
  if (frame.modes.size > 0) parts.push(`${on} of ${count(frame.modes.size, "leaf", "leaves")} ON`);
  return `${parts.join("; ")}.`;
}
