/** Experiments as the engine shows them (docs/api.md), and what a result document holds (docs/experiments.md). */

export type State = "queued" | "running" | "cancelling" | "finished" | "failed" | "cancelled" | "interrupted";

export interface Progress {
  state: State;
  stage: string;
  runs_done: number;
  runs: number;
  points_done?: number;
  points?: number;
  flows_finished: number;
  flows_failed: number;
  flows: number;
  elapsed_s: number;
  left_s: number | null;
  queue_position: number | null;
}

export interface RunHead {
  id: number;
  scheme: string;
  label: string;
  repeat: number;
  started_at: number;
  finished_at: number;
  cpu_limited: boolean;
}

export interface Experiment {
  id: number;
  name: string;
  title?: string;
  seed: number;
  spec: Record<string, unknown>;
  state: State;
  error: string;
  summary: unknown;
  created_at: number;
  finished_at: number | null;
  /** When it was begun, the last time; what is recorded has none. */
  started_at?: number | null;
  kind?: "experiment" | "sweep" | "point" | "recorded";
  parent?: number | null;
  words?: string;
  points?: number;
  runs?: RunHead[];
  progress?: Progress | null;
  children?: Point[];
}

/** A point of a sweep. */
export interface Point {
  id: number;
  words: string;
  state: State;
  error: string;
  cpu_limited: boolean | null;
}

export interface SizeFigures {
  n: number;
  failed: number;
  afct_ms: number;
  afct_ci_ms: [number, number] | null;
  p50_ms: number;
  p99_ms: number;
  p99_ci_ms: [number, number] | null;
  p99_shown: boolean;
}

export interface SchemeResult {
  scheme: string;
  short?: SizeFigures | null;
  long?: { goodput_mbps?: number; goodput_ci_mbps?: [number, number] | null } | null;
  retransmissions: number;
  recovered_packets: number;
  overhead: number;
  cpu_limited: boolean;
  baseline: boolean;
  paths?: { short?: { paths_per_flow: number }; long?: { paths_per_flow: number } };
}

export interface Finding {
  verdict: "seen" | "not seen" | "open" | "no figure";
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
  finding?: Finding | null;
  found?: Finding | null;
}

export interface ResultDocument {
  title?: string;
  baseline?: string;
  cpu_limited?: boolean;
  schemes?: Record<string, SchemeResult>;
  claims?: Claim[];
  notices?: string[];
}

/** What a sweep found: a result document for each of its points, of those that have finished. */
export interface SweepDocument {
  points?: (ResultDocument & { experiment: number })[];
}

export interface FlowRecord {
  id: number;
  run_id: number;
  traffic_class: string;
  state: string;
  size_bytes: number | null;
  fct_s: number | null;
}

export interface Preset {
  name: string;
  title: string;
  description: string;
  points: number;
  runs: number;
  schemes: string[];
  estimated_s: number;
  text: string;
}

export interface Engine {
  workers: number;
  running: number[];
  queued: number[];
  /** Why nothing is run, if so. */
  paused: string | null;
}

export interface SpecProblem {
  field: string;
  line?: number | null;
  column?: number | null;
  message: string;
}

export interface Check {
  ok: boolean;
  problems: SpecProblem[];
  runs: number;
  points: number;
  schemes: string[];
  estimated_s: number | null;
}

export const OVER: readonly State[] = ["finished", "failed", "cancelled", "interrupted"];
