/** Addresses of earlier versions of the page. */

const MOVED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    fabric: "/watch",
    paths: "/watch/paths",
    fct: "/watch/times",
    queues: "/watch/queues",
    replay: "/watch/replay",
    experiments: "/compare",
    control: "/operate",
    flows: "/operate/flows",
    tpfs: "/understand/tpfs",
    capton: "/understand/capton",
  }),
);

/** Return where a view of an earlier version is now; null: the address is of this version. */
export function movedTo(path: string, search: string): string | null {
  const [first = "", ...rest] = path.split("/").filter(Boolean);
  const target = MOVED.get(first);
  return target === undefined ? null : [target, ...rest].join("/") + search;
}
