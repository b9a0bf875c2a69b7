/** Answers of the controller's REST API, and its stream (docs/api.md). Times ending in `at` are Unix seconds. */

export interface Place {
  switch: string;
  port: number;
}

export type Role = "leaf" | "spine" | "aggregation" | "core";

export interface SwitchView {
  name: string;
  dpid: string;
  connected: boolean;
  tier: number | null;
  role: Role | null;
  stamp: number;
}

export interface LinkView {
  name: string;
  kind: "fabric";
  a: Place;
  b: Place;
  up: boolean;
  speed_kbps: number;
  rate_kbps: number | null;
}

export interface HostView {
  name: string;
  underlay_ip: string;
  mac: string;
  agent: boolean;
  place: Place | null;
  link: string | null;
  overlay: string[];
}

export interface FabricView {
  switches: SwitchView[];
  links: LinkView[];
  hosts: HostView[];
  scheme: string;
  settled: boolean;
}

export interface QueueLoad {
  queue: number;
  waiting_packets: number;
  bits_per_s: number;
  dropped_per_s: number;
}

export interface Load {
  bits_per_s: number;
  packets_per_s: number;
  share: number | null;
  queued_packets: number | null;
  dropped_per_s: number | null;
  queues?: QueueLoad[];
}

export interface LinkLoad {
  name: string;
  kind: "fabric" | "access";
  up: boolean;
  rate_kbps: number | null;
  ab: Load | null;
  ba: Load | null;
}

export interface LinksSample {
  at: number;
  interval_s: number;
  links: LinkLoad[];
}

export type TrafficClass = "short" | "long" | "control";

export interface LiveFlow {
  id: number;
  source: string;
  destination: string;
  protocol: string;
  source_port: number;
  destination_port: number;
  traffic_class: string;
  state: "active" | "ended";
  started_at: number;
  last_at: number;
  bytes: number;
  received_bytes: number;
  packets: number;
  bits_per_s: number;
  paths: Record<string, number>;
  paths_now: Record<string, number>;
  repairs: number;
  recovered: number;
  lost: number;
  reordered: number;
  held: number;
  release_timeouts: number;
}

export interface FlowsSample {
  at: number;
  interval_s: number;
  flows: LiveFlow[];
  more: number;
}

export interface FlowsPage {
  flows: LiveFlow[];
  next: number | null;
}

export interface PathView {
  stamp: number;
  switches: string[];
  links: string[];
  turn: string | null;
}

export interface FlowStep {
  at: number;
  bytes: number;
  received_bytes: number;
  packets: number;
  repairs: number;
  recovered: number;
  lost: number;
  reordered: number;
  held: number;
  release_timeouts: number;
  paths: Record<string, number>;
}

export type Mode = "on" | "off";

export interface ModeAt {
  at: number;
  leaf: string;
  mode: Mode;
  cause: string;
}

export interface FlowDetail {
  flow: LiveFlow;
  timeline: FlowStep[];
  modes: ModeAt[];
  paths: PathView[];
  queues?: {
    at: number;
    link: string;
    direction: "ab" | "ba";
    queued_packets: number;
    dropped_per_s: number;
  }[];
  faults?: { at: number; kind: "fault-began" | "fault-ended"; fault: Fault }[];
}

export interface LeafMode {
  leaf: string;
  mode: Mode;
  since_at: number;
}

export interface ModesView {
  leaves: LeafMode[];
  events: (ModeAt & { cursor: number })[];
  cursor: number;
}

export interface Health {
  ready: boolean;
  reasons: string[];
  version: string;
  uptime_s: number;
  scheme: string;
  switches: number;
  links: number;
  hosts: number;
  agents: number;
}

export interface Scheme {
  name: string;
  title: string;
  [part: string]: unknown;
}

export interface SchemeInForce {
  scheme: Scheme;
  base: string;
  overrides: Record<string, unknown>;
  packet_time_us: number;
  version: number;
}

export interface Fault {
  id: number;
  kind: "link-down" | "switch-down" | "slow-link" | "agent-down";
  target: string;
  rate_mbps: number | null;
  delay_ms?: number | null;
  began_at: number;
}

export interface FaultsView {
  faults: Fault[];
  possible: boolean;
}

export interface EventHead {
  cursor: number;
  at: number;
  kind: string;
  [field: string]: unknown;
}

export interface Hello {
  id: string;
  cursor: number;
  version: string;
  at: number;
  topics: string[];
  resumed: boolean;
}

export interface Problem {
  title: string;
  status: number;
  detail: string;
  field?: string;
}
