import type { Scheme } from "../api/schema";

/** Return true if leaves have modes (ON and OFF) under *scheme*: some class of it is served by mode. */
export function hasModes(scheme: Scheme): boolean {
  return [scheme.short, scheme.long, scheme.control].some((part) => part.by_mode !== null);
}
