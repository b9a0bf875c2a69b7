import type { FabricView } from "../api/schema";
import { natural } from "../parts/order";

/** Return the names of switches by the stamp that they leave on packets, as text. */
export function stampNames(fabric: FabricView | undefined): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const switchView of fabric?.switches ?? [])
    if (switchView.stamp) names.set(String(switchView.stamp), switchView.name);
  return names;
}

/** Return the name of a path: the switch from which it goes down. */
export function pathName(stamp: string, names: ReadonlyMap<string, string>): string {
  if (stamp === "0") return "within the leaf";
  return names.get(stamp) ?? `stamp ${stamp}`;
}

/** Return stamps in the order of their switches' names. */
export function inOrder(stamps: Iterable<string>, names: ReadonlyMap<string, string>): string[] {
  return [...new Set(stamps)].sort((left, right) => natural(pathName(left, names), pathName(right, names)));
}
