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
];
