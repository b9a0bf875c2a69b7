/** What the controller has learnt of flows (docs/tpfs.md). */

export interface FlowType {
  flows: number;
  values: string[][];
  thresholds_bytes: number[];
  mean_bytes: number;
  median_bytes: number;
  p90_bytes: number;
  cdf: number[];
  queue_bytes: number[];
}

export interface Learnt {
  features: string[];
  explanation: string;
  flows: number;
  unknown_flows: number;
  slowdown_ratio: number;
  default_thresholds_bytes: number[];
  points_bytes: number[];
  types: FlowType[];
  tried: { features: string[]; spread: number; types: number; unknown_share?: number }[];
}

export interface LearnerView {
  learning: boolean;
  interval_s: number | null;
  records: number;
  hosts: number;
  last_at: number | null;
  last_s: number | null;
  last_outcome: string;
  types: Learnt | null;
}

/** What flows of a type have in common: `destination port 5601`, values of several features joined. */
export function typeName(type: FlowType, features: readonly string[], most = 4): string {
  const shown = type.values.slice(0, most).map((values) => values.join(" / "));
  const more = type.values.length > most ? ` and ${type.values.length - most} more` : "";
  return `${features.map((feature) => feature.replaceAll("_", " ")).join(" / ")} ${shown.join(", ")}${more}`;
}
