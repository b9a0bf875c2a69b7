/** What a link carries, in words: of each direction what is reported, with its unit. */

import type { LoadView } from "../api/schema";
import type { LinkPoint } from "../live/linkHistory";
import { short } from "../charts/ticks";
import { bitRate, digits, percent } from "../parts/units";

/** Return packets with three digits, counts as whole numbers: `34 packets`. */
export const packets = (value: number): string => short(`${digits(value)} packets`);
export const packetRate = (value: number): string => `${digits(value)} packets/s`;

/** What is known of a direction now, in words; null: not reported. */
export const NOW: readonly [quantity: string, words: (load: LoadView) => string | null][] = [
  ["rate", (load) => bitRate(load.bits_per_s)],
  ["of the link", (load) => (load.share === null ? null : percent(load.share))],
  ["packets", (load) => packetRate(load.packets_per_s)],
  ["waiting", (load) => (load.queued_packets === null ? null : packets(load.queued_packets))],
  ["dropped", (load) => (load.dropped_per_s === null ? null : packetRate(load.dropped_per_s))],
];

/** Return what the link *name* between *a* and *b* carries, a line a direction; *now*: its newest sample. */
export function linkWords(
  name: string,
  a: string,
  b: string,
  now: Omit<LinkPoint, "at" | "sampledAt"> | undefined,
): string {
  if (!now) return name;
  if (!now.up) return `${name}: down`;
  const direction = (way: string, load: LoadView | null): string => {
    if (load === null) return `${way}: not reported`;
    const parts = NOW.flatMap(([quantity, words]) => {
      const text = words(load);
      return text === null
        ? []
        : [quantity === "waiting" || quantity === "dropped" ? `${text} ${quantity}` : text];
    });
    return `${way}: ${parts.join(", ")}`;
  };
  return [name, direction(`${a} → ${b}`, now.ab), direction(`${b} → ${a}`, now.ba)].join("\n");
}
