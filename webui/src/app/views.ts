/** The views, in the order of the navigation, and the sections of each; a view has a key, its sections the keys 1, 2, ... */

import { type ComponentType, lazy, type LazyExoticComponent } from "react";
import { QueuesPage } from "../queues/QueuesPage";
import { WatchPage } from "../watch/WatchPage";

type Shown = ComponentType | LazyExoticComponent<ComponentType>;

export interface Section {
  /** Below the view's; "": the one that the view opens with. */
  path: string;
  title: string;
  /** What it shows, in a sentence: for the help. */
  about: string;
  component: Shown;
}

export interface View {
  path: string;
  title: string;
  key: string;
  about: string;
  sections: readonly Section[];
}

const later = (load: () => Promise<ComponentType>): Shown => lazy(async () => ({ default: await load() }));

export const VIEWS: readonly View[] = [
  {
    path: "watch",
    title: "Watch",
    key: "w",
    about: "The fabric and what runs on it, live",
    sections: [
      {
        path: "",
        title: "Fabric",
        about: "Switches, links and hosts, what each link carries, and what flows make of it",
        component: WatchPage,
      },
      {
        path: "paths",
        title: "Paths",
        about: "The paths that packets of a flow really take",
        component: later(async () => (await import("../paths/PathsPage")).PathsPage),
      },
      {
        path: "times",
        title: "Completion times",
        about: "Completion times of live flows, by size and scheme",
        component: later(async () => (await import("../fct/FctPage")).FctPage),
      },
      {
        path: "queues",
        title: "Queues",
        about: "What waits in the queues of every port",
        component: QueuesPage,
      },
      {
        path: "replay",
        title: "Replay",
        about: "A recorded window of a run, simulated or on switches, packet by packet",
        component: later(async () => (await import("../replay/ReplayPage")).ReplayPage),
      },
    ],
  },
  {
    path: "compare",
    title: "Compare",
    key: "c",
    about: "Experiments: begin them, watch them, compare their results",
    sections: [
      {
        path: "",
        title: "Experiments",
        about: "What was run and what is; a form for a new one",
        component: later(async () => (await import("../experiments/ExperimentsPage")).ExperimentsPage),
      },
    ],
  },
  {
    path: "understand",
    title: "Understand",
    key: "u",
    about: "Schemes: how each works, its paper's claims and what was measured here",
    sections: [
      {
        path: "",
        title: "Schemes",
        about: "How each scheme works: diagram, parameters, YAML, claims and evidence",
        component: later(async () => (await import("../understand/UnderstandPage")).UnderstandPage),
      },
    ],
  },
  {
    path: "operate",
    title: "Operate",
    key: "o",
    about: "Control the fabric: scheme, faults, flows, health",
    sections: [
      {
        path: "",
        title: "Control",
        about: "Switch the scheme, break links and mend them",
        component: later(async () => (await import("../operate/OperatePage")).OperatePage),
      },
      {
        path: "flows",
        title: "Flows",
        about: "Every flow that agents reported, to sort, filter and open",
        component: later(async () => (await import("../flows/FlowsPage")).FlowsPage),
      },
    ],
  },
  {
    path: "tour",
    title: "Tour",
    key: "t",
    about: "Six steps on what the schemes do, on recorded runs; needs no fabric",
    sections: [
      {
        path: "",
        title: "Tour",
        about: "Six steps on what the schemes do",
        component: later(async () => (await import("../tour/TourPage")).TourPage),
      },
    ],
  },
];

/**
 * Return the view and section that parts of an address name; what follows the view may be the view's own
 * (`/compare/5`).
 */
export function viewOf(parts: readonly string[]): { view: View; section: Section } | null {
  const view = parts.length === 0 ? VIEWS[0] : VIEWS.find((candidate) => candidate.path === parts[0]);
  if (!view) return null;
  const section = view.sections.find((candidate) => candidate.path === (parts[1] ?? "")) ?? view.sections[0];
  return section ? { view, section } : null;
}

export const addressOf = (view: View, section: Section): string =>
  section.path ? `/${view.path}/${section.path}` : `/${view.path}`;
