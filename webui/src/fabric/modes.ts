import type { Scheme } from "../api/types";

/** Whether leaves have modes (ON and OFF) under *scheme*: some class of it is served by mode. */
export function hasModes(scheme: Scheme): boolean {
  return ["short", "long", "control"].some((name) => {
    const part = scheme[name];
    return typeof part === "object" && part !== null && "by_mode" in part && part.by_mode !== null;
  });
}
