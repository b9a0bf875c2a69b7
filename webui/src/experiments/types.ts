/** Experiments (docs/api.md), and what a result document holds (docs/experiments.md). */

import type { ExperimentsReadAnswer, ProgressView } from "../api/schema";

export type Experiment = Omit<ExperimentsReadAnswer, "progress" | "summary"> & {
  progress: ProgressView | null;
  /** A result document, or a sweep's. */
  summary: unknown;
};
export type State = Experiment["state"];

export interface SizeFigures {
  n: number;
  failed: number;
  afct_ms: number;
  afct_ci_ms: [number, number] | null;
  p50_ms?: number;
  p99_ms: number;
  p99_ci_ms: [number, number] | null;
  p99_shown: boolean;
}

export interface SchemeResult {
  scheme: string;
  short?: SizeFigures | null;
  long?: { goodput_mbps?: number; goodput_ci_mbps?: [number, number] | null } | null;
  retransmissions?: number;
  recovered_packets?: number;
  overhead?: number;
  cpu_limited: boolean;
  disturbed?: boolean;
  baseline: boolean;
  paths?: { short?: ClassPaths; long?: ClassPaths };
}

/** null: no flow of the class has crossed the fabric. */
export interface ClassPaths {
  paths_per_flow: number | null;
}

export interface ClaimVerdict {
  verdict: "seen" | "more" | "not seen" | "open" | "no figure";
  ratio: number | null;
  interval: [number, number] | null;
  why: string;
}

export interface Claim {
  text: string;
  source?: string;
  figure?: string;
  kind?: string;
  compare?: { measure: string; scheme: string; against: string } | null;
  /** Of a sweep: a finding of each point, or one of the two points that the claim compares. */
  ours?: ClaimVerdict | readonly ClaimVerdict[] | null;
}

export interface ResultDocument {
  title?: string;
  baseline?: string;
  cpu_limited?: boolean;
  disturbed?: boolean;
  schemes?: Record<string, SchemeResult>;
  claims?: Claim[];
  notices?: string[];
}

/** What a sweep found: a result document for each of its points, of those that have finished; claims over all. */
export interface SweepDocument {
  cpu_limited?: boolean;
  disturbed?: boolean;
  sweep?: { label: string; unit: string }[];
  points?: (ResultDocument & {
    experiment: number;
    at?: (string | number | boolean | null)[];
    words?: string;
  })[];
  claims?: Claim[];
}

export const OVER: readonly State[] = ["finished", "failed", "cancelled", "interrupted"];
