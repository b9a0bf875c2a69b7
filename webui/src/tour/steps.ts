/** The six steps: what each says, which stretch of which recording it plays, and what was counted there. */

import { bitRate, byteSize, duration, percent } from "../parts/units";
import type { Trace } from "../replay/trace";
import {
  bytesByKind,
  clearPaths,
  delivered,
  inMode,
  lengthOf,
  loadByPath,
  order,
  pathsPerFlow,
  rebuilt,
  retransmitted,
  sent,
  waiting,
} from "./facts";
import { NAMES, type Recordings, type SchemeName } from "./recordings";

/** A row of cells under each heading, for what was counted in the recorded windows. */
export interface Counted {
  columns: readonly string[];
  rows: readonly { name: string; cells: readonly string[] }[];
}

export interface Step {
  title: string;
  words: readonly string[];
  plays: SchemeName;
  /** Of the recording, ms from its begin. */
  from: number;
  to: number;
  /** Where it is while it does not play, ms from the recording's begin. */
  at: number;
  /** The flow whose packets alone are in full colour. */
  flow: number | null;
  counted: (recordings: Recordings) => Counted | null;
}

const LEAF = 0;

export const STEPS: readonly Step[] = [
  {
    title: "ECMP collides",
    words: [
      "Two leaves, four spines: four equal paths. ECMP hashes a flow's addresses and ports, and the hash chooses its path, for all of its packets. Nothing is measured.",
      "Three long flows go from left to right. Three flows on four paths, each drawn evenly, share at least one path with probability 1 − 4·3·2 / 4³ = 0.625. Here all three share the path by s1, and other paths carry none of their data.",
    ],
    plays: "ecmp",
    from: 50,
    to: 450,
    at: 200,
    flow: null,
    counted: (recordings) =>
      compared(recordings, ["ecmp"], (trace) => [
        ...pathRows(trace),
        ["long flows' goodput, together", bitRate(delivered(trace, "long"))],
      ]),
  },
  {
    title: "Spraying reorders",
    words: [
      "RPS draws a path for each packet. All four paths carry about the same, and the long flows get more. But packets overtake each other: TCP takes a gap for a loss, and retransmits what is only late.",
      "Long flows now wait on every path, so that short flows (blue) wait behind them, whichever path they take.",
    ],
    plays: "rps",
    from: 50,
    to: 450,
    at: 200,
    flow: null,
    counted: (recordings) =>
      compared(recordings, ["ecmp", "rps"], (trace) => [
        ...pathRows(trace),
        ["long flows' goodput, together", bitRate(delivered(trace, "long"))],
        ["long flows' packets that a packet sent later overtook", behind(trace)],
        [
          "packets that TCP retransmitted",
          String(retransmitted(trace, "long") + retransmitted(trace, "short")),
        ],
        ["a short flow's packet waits at its leaf", duration(waiting(trace, "short"))],
      ]),
  },
  {
    title: "Coding repairs",
    words: [
      "CAPS sprays short flows, too, and sends repairs (diamonds) beside their data: of k packets and r repairs any k rebuild all. So a flow need not wait for its packets in the fullest queue.",
      "One short flow is in full colour here. The receiving agent releases packets that have not arrived yet: it has rebuilt them from repairs. A packet itself waits no less than under RPS: all long flows share one path here while short ones pass, and a quarter of the packets take it, too.",
    ],
    plays: "caps",
    from: 200,
    to: 460,
    at: 308,
    flow: 5,
    counted: (recordings) =>
      compared(recordings, ["rps", "caps"], (trace) => [
        ["short flows' data packets sent", String(sent(trace, "short", "data"))],
        ["repairs sent beside them", String(sent(trace, "short", "repair"))],
        ["packets rebuilt before they came", String(rebuilt(trace, "short"))],
        ["a short flow's packet waits at its leaf", duration(waiting(trace, "short"))],
      ]),
  },
  {
    title: "Long flows step aside",
    words: [
      "A leaf is ON while short flows pass it. It then keeps each long flow to one path, by hash, so that other paths drain. It is OFF when none has passed for some time: long flows are sprayed again.",
      "Watch l1: the first short packet turns it ON. No controller is asked per packet: a meter of the switch counts.",
    ],
    plays: "caps",
    from: 150,
    to: 550,
    at: 350,
    flow: null,
    counted: ({ caps }) => {
      const [on, off] = [inMode(caps, LEAF, true), inMode(caps, LEAF, false)];
      return {
        columns: ["l1 OFF", "l1 ON"],
        rows: [
          { name: "time in this window", cells: [duration(lengthOf(off)), duration(lengthOf(on))] },
          {
            name: "paths that a long flow is sent over",
            cells: [mean(pathsPerFlow(caps, off)), mean(pathsPerFlow(caps, on))],
          },
          {
            name: "paths that get no long flow's packets",
            cells: [percent(clearPaths(caps, off)), percent(clearPaths(caps, on))],
          },
        ],
      };
    },
  },
  {
    title: "What it costs",
    words: [
      "Repairs and the agents' feedback are load, and long flows give way while leaves are ON. That is the price of short flows' speed.",
      "CAPS sends at most 0.75 repairs a data packet: more would fill the paths that they should relieve. Understand shows each claim of its paper beside what was measured here.",
    ],
    plays: "caps",
    from: 200,
    to: 600,
    at: 320,
    flow: null,
    counted: (recordings) =>
      compared(recordings, ["ecmp", "rps", "caps"], (trace) => [
        ["long flows' goodput, together", bitRate(delivered(trace, "long"))],
        ["all that hosts send", byteSize(total(trace))],
        ["share of repairs", share(trace, "repair")],
        ["share of agents' feedback", share(trace, "feedback")],
        ["packets that ports drop", String(trace.hops.filter(({ dropped }) => dropped).length)],
      ]),
  },
  {
    title: "Your turn",
    words: [],
    plays: "caps",
    from: 0,
    to: 600,
    at: 150,
    flow: null,
    counted: () => null,
  },
];

/** Return the number of the step that an address names, from 1 on. */
export function stepOf(text: string | null): number {
  const number = Number(text);
  return Number.isInteger(number) && number >= 1 && number <= STEPS.length ? number : 1;
}

type Row = readonly [name: string, cell: string];

function compared(
  recordings: Recordings,
  schemes: readonly SchemeName[],
  rowsOf: (trace: Trace) => readonly Row[],
): Counted {
  const cells = schemes.map((scheme) => rowsOf(recordings[scheme]));
  return {
    columns: schemes.map((scheme) => NAMES[scheme]),
    rows: (cells[0] ?? []).map(([name], place) => ({
      name,
      cells: cells.map((rows) => rows[place]?.[1] ?? "–"),
    })),
  };
}

function pathRows(trace: Trace): Row[] {
  return [...loadByPath(trace, "long")].map(([name, bytes]) => [
    `long flows' data by ${name}`,
    byteSize(bytes),
  ]);
}

const mean = (value: number): string => String(Number(value.toFixed(1)));

function behind(trace: Trace): string {
  const { packets, behind: late } = order(trace, "long");
  return packets === 0 ? "–" : percent(late / packets);
}

function total(trace: Trace): number {
  return [...bytesByKind(trace).values()].reduce((sum, bytes) => sum + bytes, 0);
}

function share(trace: Trace, kind: "repair" | "feedback"): string {
  return percent((bytesByKind(trace).get(kind) ?? 0) / Math.max(1, total(trace)));
}
