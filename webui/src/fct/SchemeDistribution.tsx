import { useMemo } from "react";
import { Distribution } from "../charts/Distribution";
import type { SchemeStyle } from "../parts/schemes";
import { duration } from "../parts/units";
import { distribution } from "./statistics";

/**
 * Completion times (s, shortest first) under a scheme; *label*: what their curve is called; *flows*: how many there were
 * with those that failed, if any may have.
 */
export interface SchemeTimes {
  label: string;
  style: SchemeStyle;
  times: readonly number[];
  flows?: number;
  dashed?: boolean;
}

/** Draw distributions of completion times, a curve each. */
export function SchemeDistribution({ of, height }: { of: readonly SchemeTimes[]; height?: number }) {
  const curves = useMemo(
    () =>
      of.map(({ label, style, times, flows, dashed = false }) => ({
        name: label,
        dashed,
        ...style,
        points: distribution(times, flows),
      })),
    [of],
  );
  return (
    <Distribution
      title="Share of flows that are done"
      of="completion time"
      format={duration}
      curves={curves}
      {...(height ? { height } : {})}
    />
  );
}
