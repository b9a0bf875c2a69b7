/** What a scheme is made of, in words, and which of some paths its packets would take: for its diagram. */

import type { ClassScheme, Scheme } from "../api/schema";
import { byteSize, count, duration } from "../parts/units";
import type { Counts } from "../paths/shares";

/** Paths of the diagram, by their stamps. */
export const PATHS = ["1", "2", "3", "4"] as const;
/** The path of a class that keeps to one. */
const KEPT: Readonly<Record<string, string>> = { short: "2", long: "3" };

export interface Part {
  trafficClass: "short" | "long";
  /** "" without modes. */
  mode: "" | "ON" | "OFF";
  counts: Counts;
  words: string;
}

/** Return each class's paths, for each mode of its leaf where the scheme has modes. */
export function parts(scheme: Scheme): Part[] {
  return (["short", "long"] as const).flatMap((trafficClass) => {
    const part = scheme[trafficClass];
    const modes = part.by_mode
      ? ([
          ["ON", part.by_mode.on],
          ["OFF", part.by_mode.off],
        ] as const)
      : ([["", part.group ?? "hash"]] as const);
    return modes.map(([mode, group]) => ({
      trafficClass,
      mode,
      counts: counts(group, part, trafficClass),
      words: pathWords(group, part),
    }));
  });
}

/**
 * Return true if a class's packets spread: switches must hash the source port, and the agent must vary it within a
 * flow.
 */
function spreads(group: string, part: ClassScheme): boolean {
  return group !== "hash" && !["flow-hash", "label-hash", "plb"].includes(part.entropy);
}

function counts(group: string, part: ClassScheme, trafficClass: string): Counts {
  if (spreads(group, part)) return Object.fromEntries(PATHS.map((stamp) => [stamp, 1]));
  return { [KEPT[trafficClass] ?? "2"]: 1 };
}

const ENTROPY: Readonly<Record<ClassScheme["entropy"], string>> = {
  spray: "each packet on a random path",
  "flow-hash": "each flow on one path, by its hash",
  "label-hash": "each flow on one path, by a label drawn from its hash",
  "round-robin": "packets on all paths in turn",
  granted: "the path that the central scheduler granted",
  flowcell: "the next path after every flowcell",
  flowlet: "a new path after a pause in the flow",
  tr: "the path of least delay on which a flow's packets stay in order",
  reps: "random paths, and again those whose packets arrived without congestion",
  plb: "one path, and another after congestion",
  unblocked: "each packet on a random path among those that feedback shows not blocked",
  file: "as the operator's own policy says",
};

function pathWords(group: string, part: ClassScheme): string {
  if (group === "hash") return "each flow on one path, by its hash at the switches";
  const path = part.path;
  const detail = [
    path?.flowcell_bytes != null && `flowcells of ${byteSize(path.flowcell_bytes)}`,
    path?.gap_packet_times != null && `pauses of ${packetTimes(path.gap_packet_times)}`,
    path?.freeze_packet_times != null && `frozen for ${packetTimes(path.freeze_packet_times)} after loss`,
  ].filter(Boolean);
  return [ENTROPY[part.entropy], ...detail].join("; ");
}

const packetTimes = (value: number): string => `${value} packet times`;

const REDUNDANCY: Readonly<Record<string, string>> = {
  paper: "as many repairs as the paper's rule says",
  "target-decode-probability": "repairs for a target probability of decoding",
  adaptive: "repairs by the losses that were seen",
  htpc: "fewer repairs the more a flow has sent",
  "one-per-unit": "one repair a unit",
};

/** Return true if a scheme is for simulations alone: no lab has its hosts and ports. */
export const onlySimulated = (scheme: Pick<Scheme, "dctcp" | "pfabric">): boolean =>
  scheme.dctcp != null || scheme.pfabric != null;

/** Return a scheme as a choice of a list; *labs*: of what runs on switches, for which not all can be chosen. */
export function schemeOption(scheme: Pick<Scheme, "name" | "title" | "dctcp" | "pfabric">, labs: boolean) {
  const simulated = onlySimulated(scheme);
  const label = `${scheme.name}: ${scheme.title}${simulated ? " (simulations only)" : ""}`;
  return { value: scheme.name, label, disabled: labs && simulated };
}

/** Return the parts of a scheme except its paths, as a name and a sentence each. */
export function mechanisms(scheme: Scheme): { name: string; words: string }[] {
  const of = (trafficClass: "short" | "long") => {
    const { coding, release } = scheme[trafficClass];
    return [
      coding && {
        name: `Coding of ${trafficClass} flows`,
        words: `${coding.code}, ${REDUNDANCY[coding.redundancy] ?? coding.redundancy}; units of up to ${count(coding.max_k, "packet")}, up to ${count(coding.max_r, "repair")} each`,
      },
      release && {
        name: `In-order release of ${trafficClass} flows`,
        words:
          release.rule === "paths"
            ? `the receiving agent waits for what is missing until all paths of the flow have delivered later packets, or were silent for ${packetTimes(release.packet_times)}`
            : `the receiving agent waits up to ${packetTimes(release.packet_times)} for what is missing`,
      },
    ];
  };
  const { mode, partition, queues, priority, admission, replication, dctcp, pfabric } = scheme;
  return [
    {
      name: "Classes",
      words: `flows below ${byteSize(scheme.short_limit_bytes)} are short; ${scheme.prior_knowledge ? "sizes that applications announce are used" : "sizes are not known beforehand"}`,
    },
    mode && {
      name: "Mode of a leaf",
      words: `ON from its first short packet until ${count(mode.quiet_intervals, "interval")} of ${packetTimes(mode.sampling_packet_times)} passed without one`,
    },
    ...of("short"),
    ...of("long"),
    partition && {
      name: "Partition of paths",
      words: `low-latency paths for short flows, the others for long ones; decided every ${packetTimes(partition.sampling_packet_times)}`,
    },
    dctcp && {
      name: "Hosts and ports",
      words: `DCTCP's senders; ports mark packets from ${dctcp.mark_from_packets} waiting ones on`,
    },
    pfabric && {
      name: "Hosts and ports",
      words: `pFabric's senders with windows of ${pfabric.initial_window} to ${count(pfabric.largest_window, "packet")}, time-outs of ${packetTimes(pfabric.timeout_packet_times)}; ports hold ${byteSize(pfabric.buffer_bytes)}, send the flow with the least left first and drop the packet of the flow with the most`,
    },
    queues && { name: "Queues", words: `${queues.number} a port, the first served first` },
    priority && {
      name: "Priority",
      words: `by ${priority.kind === "size" ? "the flow's size" : "the bytes it has sent"}: ${count(priority.thresholds_bytes.length, "threshold")}${priority.prediction ? `, learnt for each type of flow every ${duration(priority.prediction.interval_s)}` : ""}`,
    },
    admission && {
      name: "Admission",
      words: `flows above ${byteSize(admission.threshold_bytes)} ask the central scheduler for a rate on ${admission.paths === "all" ? "all paths" : "one path"}`,
    },
    replication && {
      name: "Replication",
      words: `of each short flow's ${replication === "syn" ? "SYN" : "packets"}, over a path of its own`,
    },
  ].filter((mechanism) => mechanism !== null && mechanism !== undefined);
}
