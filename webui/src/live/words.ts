/** Whether what is shown is of now, in words. */

import { wholeSeconds } from "../parts/units";
import type { Connection } from "./store";

/** Return the state of the connection in words. *silentS*: seconds since the last message; null: there was none. */
export function connectionWords(connection: Connection, silentS: number | null): string {
  const age = silentS === null ? "" : `, data ${wholeSeconds(silentS)} old`;
  return {
    connecting: "◌ connecting…",
    live: "● live",
    old: `◐ no updates${age}`,
    lost: `○ connection lost${age}; trying again`,
  }[connection];
}
