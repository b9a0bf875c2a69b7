import type { FabricView } from "../api/schema";

/** Switches by the stamp that they leave on packets, as text. */
export function stampNames(fabric: FabricView | undefined): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const one of fabric?.switches ?? []) if (one.stamp) names.set(String(one.stamp), one.name);
  return names;
}

/** What a path is called: by the switch from which it goes down. */
export function pathName(stamp: string, names: ReadonlyMap<string, string>): string {
  if (stamp === "0") return "within the leaf";
  return names.get(stamp) ?? `stamp ${stamp}`;
}

/** Stamps in the order of their switches' names. */
export function inOrder(stamps: Iterable<string>, names: ReadonlyMap<string, string>): string[] {
  return [...new Set(stamps)].sort((one, other) =>
    pathName(one, names).localeCompare(pathName(other, names), "en", { numeric: true }),
  );
}
