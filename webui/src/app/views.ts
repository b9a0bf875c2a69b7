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
    about: "Every flow that agents reported, to sort, filter and open",
    component: lazy(async () => ({ default: (await import("../flows/FlowsPage")).FlowsPage })),
  },
  {
    path: "experiments",
    title: "Experiments",
    key: "e",
    about: "Begin experiments, watch them, compare what they found",
    component: lazy(async () => ({
      default: (await import("../experiments/ExperimentsPage")).ExperimentsPage,
    })),
  },
  {
    path: "control",
    title: "Control",
    key: "o",
    about: "Switch the scheme, break links and mend them",
    component: lazy(async () => ({ default: (await import("../control/ControlPage")).ControlPage })),
  },
  {
    path: "queues",
    title: "Queues",
    key: "q",
    about: "What waits in the queues of every port",
    component: lazy(async () => ({ default: (await import("../queues/QueuesPage")).QueuesPage })),
  },
  {
    path: "tpfs",
    title: "TPFS",
    key: "t",
    about: "Types of flows: their sizes, their thresholds",
    component: lazy(async () => ({ default: (await import("../tpfs/TpfsPage")).TpfsPage })),
  },
  {
    path: "capton",
    title: "CAPTON",
    key: "g",
    about: "Grants of the central scheduler over time",
    component: lazy(async () => ({ default: (await import("../capton/CaptonPage")).CaptonPage })),
  },
  {
    path: "replay",
    title: "Replay",
    key: "r",
    about: "A recorded window of a simulated run, packet by packet",
    component: lazy(async () => ({ default: (await import("../replay/ReplayPage")).ReplayPage })),
  },
];
