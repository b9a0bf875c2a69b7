import { useMemo } from "react";
import { Distribution } from "../charts/Distribution";
import { schemeStyle } from "../parts/schemes";
import { duration } from "../parts/units";
import { distribution } from "./statistics";

/** Distributions of completion times (s, shortest first), a curve a scheme. */
export function SchemeDistribution({
  times,
  height,
}: {
  times: readonly (readonly [string, readonly number[]])[];
  height?: number;
}) {
  const curves = useMemo(
    () =>
      times.map(([scheme, ofScheme]) => ({
        name: scheme,
        ...schemeStyle(scheme),
        points: distribution(ofScheme),
      })),
    [times],
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
