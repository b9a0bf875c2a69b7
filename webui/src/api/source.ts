/** Where what is watched comes from: "", this controller's own fabric; "/runs/current", the run that its queue is at. */

import { createContext, useContext } from "react";

export const RUN = "/runs/current";
export const SourceContext = createContext("");
export const useSource = (): string => useContext(SourceContext);
