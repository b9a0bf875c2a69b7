import type { LiveFlow } from "../src/api/schema";

/** A flow as the stream sends it, but for what *more* says. */
export const flow = (id: number, more: Partial<LiveFlow> = {}): LiveFlow => ({
  id,
  source: "h1",
  destination: "h5",
  protocol: "tcp",
  source_port: 1,
  destination_port: 2,
  traffic_class: "short",
  priority: 0,
  state: "active",
  started_at: 0,
  last_at: 0,
  bytes: 50_000,
  received_bytes: 50_000,
  packets: 40,
  bits_per_s: 0,
  paths: { "1": 40 },
  paths_now: {},
  repairs: 0,
  recovered: 0,
  lost: 0,
  reordered: 0,
  held: 0,
  release_timeouts: 0,
  ...more,
});
