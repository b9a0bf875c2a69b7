/** The views, in the order of the navigation; each has one key. */

import { type ComponentType, lazy, type LazyExoticComponent } from "react";
import { FabricPage } from "../fabric/FabricPage";

export interface View {
  path: string;
  title: string;
  key: string;
  /** What it shows, in a sentence: for the help. */
  about: string;
  component: ComponentType | LazyExoticComponent<ComponentType>;
}

export const VIEWS: readonly View[] = [
  {
    path: "fabric",
    title: "Fabric",
    key: "f",
    about: "Switches, links and hosts, and what every link carries now",
    component: FabricPage,
  },
  {
    path: "paths",
    title: "Live paths",
    key: "p",
    about: "The paths that packets of a flow really take",
    component: lazy(async () => ({ default: (await import("../paths/PathsPage")).PathsPage })),
  },
  {
    path: "fct",
    title: "FCT",
    key: "c",
    about: "Completion times of live flows, by size and scheme",
    component: lazy(async () => ({ default: (await import("../fct/FctPage")).FctPage })),
  },
  {
    path: "flows",
    title: "Flows",
    key: "l",
    about: "Every flow that agents told of, to sort, filter and open",
    component: lazy(async () => ({ default: (await import("../flows/FlowsPage")).FlowsPage })),
  },
];
