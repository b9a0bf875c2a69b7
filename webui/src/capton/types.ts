/** The central scheduler (docs/capton.md). */

export interface Grant {
  flow: number;
  source: string;
  destination: string;
  state: "granted" | "waiting";
  rate_bps: number;
  remaining_bytes: number;
  asked_bytes: number;
  asked_s_ago: number;
  path: number | null;
}

export interface VirtualLink {
  name: string;
  of: string;
  kind: "host" | "leaf" | "pod" | "path";
  direction: string;
  capacity_bps: number;
  granted_bps: number;
  utilisation: number;
}

export interface CaptonView {
  enabled: boolean;
  scheme: string;
  paths: string;
  totals: { granted_flows: number; waiting_flows: number; granted_bps: number; remaining_bytes: number };
  flows: Grant[];
  links: VirtualLink[];
  counters: Record<string, number>;
  latency: { count: number; median_us: number | null; p99_us: number | null };
}
