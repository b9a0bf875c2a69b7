export const MS = 1e9;

/** Two hosts on one leaf at 12 Mbit/s, so 1500 B take 1 ms; a long packet, a repair behind it, one that is dropped. */
export function recording() {
  const ms = MS;
  return {
    format: "capstan-packet-trace",
    version: 1,
    spec: "made-up",
    scheme: "caps",
    repeat: 1,
    begin_ps: 5 * ms,
    length_ps: 10 * ms,
    cut: false,
    hosts: ["h1", "h2"],
    links: {
      from: ["h1", "l1"],
      to: ["l1", "h2"],
      bps: [12e6, 12e6],
      delay_ps: [0, ms],
      room_packets: [2, 0],
    },
    flows: { id: [7], source: [0], destination: [1], bytes: [null], class: ["long"] },
    packets: {
      flow: [0, 0, 0, -1],
      number: [1, 1, 2, 9],
      kind: [0, 3, 0, 4],
      class: [2, 1, 2, 3],
      bytes: [1500, 1500, 1500, 150],
      source: [0, 0, 0, 0],
      destination: [1, 1, 1, 1],
    },
    hops: {
      packet: [0, 1, 2, 0, 3],
      link: [0, 0, 0, 1, 0],
      offered_ps: [0, 0, 0.5 * ms, 0.5 * ms, 8 * ms],
      waited_ps: [0, ms, 0.25 * ms, 0, 0],
      outcome: [0, 0, 1, 0, 2],
      queue: [0, 1, 2, 0, 0],
    },
    releases: { at_ps: [] as number[], flow: [] as number[], number: [] as number[], kind: [] as number[] },
    modes: { at_ps: [0, 3 * ms], leaf: [0, 0], on: [true, false] },
  };
}
