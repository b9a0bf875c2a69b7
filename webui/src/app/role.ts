/** What this reader may do: "operate" changes things, "read" does not. */

import { createContext, useContext } from "react";

export type ReaderRole = "operate" | "read";
export const RoleContext = createContext<ReaderRole>("read");
export const useRole = (): ReaderRole => useContext(RoleContext);
