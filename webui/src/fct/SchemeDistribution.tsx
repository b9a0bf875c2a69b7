import { useMemo } from "react";
import { Distribution } from "../charts/Distribution";
import { schemeStyle } from "../parts/schemes";
import { duration } from "../parts/units";
import { distribution } from "./statistics";

/** Completion times (s, shortest first) under a scheme; *label*: what their curve is called. */
export interface SchemeTimes {
  label: string;
  scheme: string;
  times: readonly number[];
  dashed?: boolean;
}

/** Draw distributions of completion times, a curve each. */
export function SchemeDistribution({ of, height }: { of: readonly SchemeTimes[]; height?: number }) {
  const curves = useMemo(
    () =>
      of.map(({ label, scheme, times, dashed = false }) => ({
        name: label,
        dashed,
        ...schemeStyle(scheme),
        points: distribution(times),
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
