/** What this reader may do: "operate" changes things, "read" does not. */

import { createContext, useContext } from "react";

/** Ends the session; null where none is needed. */
export const LogOutContext = createContext<(() => void) | null>(null);
export const useLogOut = (): (() => void) | null => useContext(LogOutContext);

export type ReaderRole = "operate" | "read";
export const RoleContext = createContext<ReaderRole>("read");
export const useRole = (): ReaderRole => useContext(RoleContext);
