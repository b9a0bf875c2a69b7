/** What the controller has learnt of flows (docs/tpfs.md). */

import type { FlowType } from "../api/schema";

/** Return what flows of a type have in common: `destination port 5601`, values of several features joined. */
export function typeName(type: FlowType, features: readonly string[], most = 4): string {
  const shown = type.values.slice(0, most).map((values) => values.join(" / "));
  const more = type.values.length > most ? ` and ${type.values.length - most} more` : "";
  return `${features.map((feature) => feature.replaceAll("_", " ")).join(" / ")} ${shown.join(", ")}${more}`;
}
