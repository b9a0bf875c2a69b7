/** Where switches and hosts are drawn: a row a tier, hosts below their leaf; links need no crossing that order avoids. */

import { group, rollup } from "d3-array";
import type { FabricView, HostView, SwitchView } from "../api/schema";
import { natural } from "../parts/order";

export interface Spot {
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  switches: ReadonlyMap<string, Spot>;
  hosts: ReadonlyMap<string, Spot>;
  /** Rows from the top, with what they are called. */
  rows: readonly { y: number; name: string }[];
}

/** Least room for a switch with its badge, and at the sides. */
const SLOT = 62;
/** Least room for a host: a name of three letters. */
const HOST_SLOT = 36;
const MARGIN = 50;
const ROW = 175;
/** Rows of a wide window are further apart, up to this; by this share of the width. */
const HIGHEST_ROW = 260;
const ROW_SHARE = 0.2;
const HOST_ROW = 100;
const TOP = 46;

/** Return a host's name, or its address where no agent has given it a name. */
export const hostName = (host: HostView): string => host.name || host.underlay_ip;

/**
 * Return the two ends of the link *name*, `ab` from the first. Names may contain "-": until the fabric is known the
 * last "-" separates the ends.
 */
export function linkEnds(name: string, fabric: FabricView | undefined): readonly [string, string] {
  const ends = fabric && endsIn(fabric).get(name);
  if (ends) return ends;
  const between = name.lastIndexOf("-");
  return [name.slice(0, between), name.slice(between + 1)];
}

/**
 * Return both directions of the link *name* in words: `l1 → s1`. Of links between the same two switches all but the
 * first have the number of their names: `l1 → s1:7`.
 */
export function linkWays(
  name: string,
  fabric: FabricView | undefined,
): Readonly<Record<"ab" | "ba", string>> {
  const [a, b] = linkEnds(name, fabric);
  const first = `${a}-${b}`;
  const number = name.startsWith(`${first}:`) ? name.slice(first.length) : "";
  return { ab: `${a} → ${b}${number}`, ba: `${b} → ${a}${number}` };
}

const KNOWN_ENDS = new WeakMap<FabricView, ReadonlyMap<string, readonly [string, string]>>();

/** Return the ends of all links of *fabric* by name: asked for each link of each sample, so found once a fabric. */
function endsIn(fabric: FabricView): ReadonlyMap<string, readonly [string, string]> {
  let ends = KNOWN_ENDS.get(fabric);
  if (!ends) {
    const access = fabric.hosts.flatMap(
      (host) =>
        (host.link && host.place ? [[host.link, [hostName(host), host.place.switch]]] : []) as Named[],
    );
    const between = fabric.links.map((link): Named => [link.name, [link.a.switch, link.b.switch]]);
    KNOWN_ENDS.set(fabric, (ends = new Map([...access, ...between])));
  }
  return ends;
}
type Named = [name: string, ends: readonly [string, string]];

/** Return a switch's name in at most *letters* letters: its end, in which names differ (`0xaabbccddeeff`). */
export const inBox = (name: string, letters: number): string =>
  name.length <= letters ? name : `…${name.slice(1 - letters)}`;

const ROW_NAMES: Readonly<Record<string, string>> = {
  leaf: "Leaves",
  spine: "Spines",
  aggregation: "Aggregation",
  core: "Cores",
};

/**
 * Return the places of all nodes. Tiers are numbered from the leaves (0) up; a switch whose tier is not known yet is
 * drawn at the top. *wanted*: the available width; the layout is wider where a row needs more.
 */
export function layOut(fabric: FabricView, wanted: number): Layout {
  const top = Math.max(0, ...fabric.switches.map((switchView) => switchView.tier ?? 0));
  const unknown = fabric.switches.some((switchView) => switchView.tier === null);
  const rowsOfSwitches = top + 1 + (unknown ? 1 : 0);
  const perTier = rollup(
    fabric.switches,
    (members) => members.length,
    (switchView) => switchView.tier ?? top + 1,
  );
  const known = new Set(fabric.switches.map(({ name }) => name));
  const placed = [...group(fabric.hosts, (host) => host.place?.switch ?? "")].filter(([leaf]) =>
    known.has(leaf),
  );
  const mostHosts = Math.max(0, ...placed.map(([, members]) => members.length));
  const needed = Math.max(SLOT * Math.max(1, ...perTier.values()), HOST_SLOT * placed.length * mostHosts);
  const width = Math.max(wanted, 2 * MARGIN + needed);
  const step = Math.min(HIGHEST_ROW, Math.max(ROW, ROW_SHARE * wanted));
  const switches = new Map<string, Spot>();
  const rows: { y: number; name: string }[] = [];
  for (let row = 0; row < rowsOfSwitches; row += 1) {
    const tier = rowsOfSwitches - 1 - row;
    const members = fabric.switches
      .filter((switchView) => (switchView.tier === null ? tier > top : switchView.tier === tier))
      .sort((left, right) => natural(left.name, right.name));
    const y = TOP + row * step;
    members.forEach((member, index) =>
      switches.set(member.name, { x: spread(index, members.length, width), y }),
    );
    rows.push({ y, name: tier > top ? "Not placed yet" : rowName(members) });
  }
  const hosts = new Map<string, Spot>();
  const y = TOP + (rowsOfSwitches - 1) * step + HOST_ROW;
  const slot = (width - 2 * MARGIN) / Math.max(1, placed.length);
  for (const [leaf, members] of placed) {
    const centre = switches.get(leaf)?.x ?? 0;
    const apart = Math.min(54, (slot * 0.94) / members.length);
    members
      .sort((left, right) => natural(hostName(left), hostName(right)))
      .forEach((host, index) =>
        hosts.set(hostName(host), { x: centre + (index - (members.length - 1) / 2) * apart, y }),
      );
  }
  if (hosts.size > 0) rows.push({ y, name: "Hosts" });
  return { width, height: y + 40, switches, hosts, rows };
}

/** A link with the places of its ends. */
export interface Line {
  name: string;
  /** Names of its ends. */
  from: string;
  to: string;
  a: Spot;
  b: Spot;
  up: boolean;
}

/** Units of the drawing between two links of the same switches: each has two lines, which are up to 6.2 wide. */
const PARALLEL = 16;

/**
 * Return the links whose ends are both drawn, those of hosts behind the others, and of links between the same two
 * switches each beside the one before. Ends of others are the layout's own objects: a line is drawn again only where
 * they change.
 */
export function linesOf(fabric: FabricView, layout: Layout): Line[] {
  const between = fabric.links.map((link) => {
    const [from, to] = [link.a.switch, link.b.switch];
    return {
      name: link.name,
      from,
      to,
      a: layout.switches.get(from),
      b: layout.switches.get(to),
      up: link.up,
    };
  });
  const access = fabric.hosts.map((host) => {
    const [from, to] = [hostName(host), host.place?.switch ?? ""];
    return {
      name: host.link ?? "",
      from,
      to,
      a: layout.hosts.get(from),
      b: layout.switches.get(to),
      up: true,
    };
  });
  const drawn = new Map<string, number>();
  return [...between, ...access].flatMap(({ a, b, ...line }) => {
    if (!a || !b || !line.name) return [];
    const ends = `${line.from} ${line.to}`;
    const before = drawn.get(ends) ?? 0;
    drawn.set(ends, before + 1);
    const aside = ({ x, y }: Spot): Spot => ({ x: x + before * PARALLEL, y });
    return [{ ...line, ...(before === 0 ? { a, b } : { a: aside(a), b: aside(b) }) }];
  });
}

function rowName(members: readonly SwitchView[]): string {
  return ROW_NAMES[members[0]?.role ?? ""] ?? "Switches";
}

/** Return the place of number *index* of *number* in a row. */
function spread(index: number, number: number, width: number): number {
  return MARGIN + ((index + 0.5) / number) * (width - 2 * MARGIN);
}

/** Return *from*–*to* shifted by *by* to the left of its direction. */
export function beside(from: Spot, to: Spot, by: number): [Spot, Spot] {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const length = Math.hypot(dx, dy) || 1;
  const x = (dy / length) * by;
  const y = (-dx / length) * by;
  return [
    { x: from.x + x, y: from.y + y },
    { x: to.x + x, y: to.y + y },
  ];
}
