/** A recorded window of a run, simulated or on switches (docs/packet-traces.md): read from its file, and checked. */

export const KINDS = ["data", "acknowledgement", "opening", "repair", "feedback"] as const;
export const CLASSES = ["none", "short", "long", "control"] as const;
export type Kind = (typeof KINDS)[number];
export type TrafficClass = (typeof CLASSES)[number];

export const SENT = 0;
export const DROPPED = 1;
const FORMAT = "capstan-packet-trace";
const VERSION = 1;
/** Of the document, uncompressed. */
const MOST_BYTES = 64_000_000;

export interface Trace {
  spec: string;
  scheme: string;
  repeat: number;
  beginPs: number;
  lengthPs: number;
  /** The recording was full before its window was over. */
  cut: boolean;
  /** Packets that were dropped in the window, at ports that a recording of switches does not know. */
  unplacedDrops: number;
  hosts: readonly string[];
  links: readonly Link[];
  flows: readonly Flow[];
  packets: readonly Packet[];
  /** In the order in which packets came to ports. */
  hops: readonly Hop[];
  modes: readonly ModeChange[];
  /** In the order in which they were. */
  releases: readonly Release[];
}

export interface Link {
  from: string;
  to: string;
  bps: number;
  delayPs: number;
  /** Packets that its port holds; 0: not known. */
  room: number;
}

export interface Flow {
  id: number;
  source: string;
  destination: string;
  /** Null: without end. */
  bytes: number | null;
  trafficClass: string;
}

export interface Packet {
  /** Null: of no flow. */
  flow: Flow | null;
  number: number;
  kind: Kind;
  trafficClass: TrafficClass;
  bytes: number;
}

/** A packet at a port and on its link. Times are ps from the window's begin. */
export interface Hop {
  packet: number;
  link: number;
  offered: number;
  /** When it began to leave, or was dropped; null: the recording ended before. */
  left: number | null;
  /** When it was at the far end; null: it never was. */
  arrived: number | null;
  dropped: boolean;
  /** Packets that waited when it had come, itself counted where it waits. */
  queue: number;
}

export interface ModeChange {
  at: number;
  leaf: number;
  on: boolean;
}

/** A packet that an agent handed to its host. */
export interface Release {
  at: number;
  flow: Flow;
  number: number;
  kind: Kind;
}

/** What is wrong with a file; its message is for people. */
export class TraceError extends Error {}

/** Read a recording's file. */
export async function readTrace(file: Blob): Promise<Trace> {
  let text: string;
  try {
    text = await unpacked(file);
  } catch (error) {
    if (error instanceof TraceError) throw error;
    throw new TraceError("This is no recording: it is not gzip.");
  }
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new TraceError("This is no recording: there is no JSON in it.");
  }
  return parseTrace(document);
}

async function unpacked(file: Blob): Promise<string> {
  const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.byteLength;
    if (bytes > MOST_BYTES) throw new TraceError("The recording is too large: record a shorter window.");
    pieces.push(decoder.decode(value, { stream: true }));
  }
  return pieces.join("") + decoder.decode();
}

type Columns = Record<string, readonly unknown[]>;

/** Return the trace that a file's document has; TraceError: it has none. */
export function parseTrace(document: unknown): Trace {
  const fields = isRecord(document) ? document : {};
  if (fields["format"] !== FORMAT) throw new TraceError("This is no recording of packets.");
  if (fields["version"] !== VERSION) {
    throw new TraceError(
      `The recording has version ${String(fields["version"])}; this page reads ${VERSION}.`,
    );
  }
  const hosts = strings(fields["hosts"], "hosts");
  const links = rows(fields, "links", ["from", "to", "bps", "delay_ps", "room_packets"], (cell) => ({
    from: String(cell("from")),
    to: String(cell("to")),
    bps: cell.number("bps"),
    delayPs: cell.number("delay_ps"),
    room: cell.number("room_packets"),
  }));
  const flows = rows(fields, "flows", ["id", "source", "destination", "bytes", "class"], (cell) => ({
    id: cell.number("id"),
    source: pick(hosts, cell.number("source"), "flows.source"),
    destination: pick(hosts, cell.number("destination"), "flows.destination"),
    bytes: cell("bytes") === null ? null : cell.number("bytes"),
    trafficClass: String(cell("class")),
  }));
  const packets = rows(fields, "packets", ["flow", "number", "kind", "class", "bytes"], (cell) => ({
    flow: cell.number("flow") < 0 ? null : pick(flows, cell.number("flow"), "packets.flow"),
    number: cell.number("number"),
    kind: pick(KINDS, cell.number("kind"), "packets.kind"),
    trafficClass: pick(CLASSES, cell.number("class"), "packets.class"),
    bytes: cell.number("bytes"),
  }));
  const modes = rows(fields, "modes", ["at_ps", "leaf", "on"], (cell) => ({
    at: cell.number("at_ps"),
    leaf: cell.number("leaf"),
    on: cell("on") === true,
  }));
  let released = 0;
  const releases = rows(fields, "releases", ["at_ps", "flow", "number", "kind"], (cell) => {
    released += cell.number("at_ps");
    return {
      at: released,
      flow: pick(flows, cell.number("flow"), "releases.flow"),
      number: cell.number("number"),
      kind: pick(KINDS, cell.number("kind"), "releases.kind"),
    };
  });
  return {
    spec: String(fields["spec"]),
    scheme: String(fields["scheme"]),
    repeat: Number(fields["repeat"]),
    beginPs: Number(fields["begin_ps"]),
    lengthPs: Number(fields["length_ps"]),
    cut: fields["cut"] === true,
    unplacedDrops: unplacedDropsOf(fields),
    hosts,
    links,
    flows,
    packets,
    hops: hopsOf(fields, packets, links),
    modes,
    releases,
  };
}

/** Return the drops without a port: a simulation knows the port of each. */
function unplacedDropsOf(fields: Record<string, unknown>): number {
  const switches = fields["switches"];
  if (!isRecord(switches)) return 0;
  const drops = switches["unplaced_drops"];
  if (typeof drops === "number" && Number.isInteger(drops) && drops >= 0) return drops;
  throw new TraceError("The recording is damaged: switches.unplaced_drops is no number of packets.");
}

function hopsOf(fields: Columns | Record<string, unknown>, packets: Packet[], links: Link[]): Hop[] {
  const onSwitches = isRecord(fields["switches"]);
  const columns = ["packet", "link", "offered_ps", "waited_ps", "outcome", "queue"];
  if (onSwitches) columns.push("flight_ps");
  let offered = 0;
  return rows(fields, "hops", columns, (cell) => {
    offered += cell.number("offered_ps");
    const number = cell.number("packet");
    const packet = pick(packets, number, "hops.packet");
    const link = pick(links, cell.number("link"), "hops.link");
    const outcome = cell.number("outcome");
    const over = outcome === SENT || outcome === DROPPED;
    const left = over ? offered + cell.number("waited_ps") : null;
    const sent = outcome === SENT && left !== null;
    // an idle port of the lab lets a packet through at once
    const flight = onSwitches ? cell.number("flight_ps") : crossingPs(packet.bytes, link);
    return {
      packet: number,
      link: cell.number("link"),
      offered,
      left,
      arrived: sent ? left + flight : null,
      dropped: outcome === DROPPED,
      queue: cell.number("queue"),
    };
  });
}

function crossingPs(bytes: number, link: Link): number {
  return Math.ceil((bytes * 8e12) / link.bps) + link.delayPs;
}

interface Cell {
  (column: string): unknown;
  number(column: string): number;
}

/** Make a row of each place of a table's columns. */
function rows<T>(
  fields: Record<string, unknown>,
  name: string,
  columns: readonly string[],
  make: (cell: Cell) => T,
): T[] {
  const table = isRecord(fields[name]) ? fields[name] : {};
  const lengths = new Set(
    columns.map((column) => (Array.isArray(table[column]) ? table[column].length : -1)),
  );
  const [length] = lengths;
  if (lengths.size !== 1 || length === undefined || length < 0) {
    throw new TraceError(`The recording is damaged: columns of ${name} are missing or differ in length.`);
  }
  let row = 0;
  const cell = ((column: string) => (table[column] as unknown[])[row]) as Cell;
  cell.number = (column) => {
    const value = cell(column);
    if (typeof value === "number" && Number.isFinite(value)) return value;
    throw new TraceError(`The recording is damaged: ${name}.${column}, row ${row + 1} is no number.`);
  };
  const made: T[] = [];
  for (; row < length; row += 1) made.push(make(cell));
  return made;
}

function pick<T>(values: readonly T[], place: number, where: string): T {
  const value = values[place];
  if (value === undefined) {
    throw new TraceError(`The recording is damaged: ${where} names row ${place} of ${values.length}.`);
  }
  return value;
}

function strings(value: unknown, where: string): string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw new TraceError(`The recording is damaged: ${where} is missing.`);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
