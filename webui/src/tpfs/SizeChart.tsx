import { useMemo } from "react";
import type { LearntTypes } from "../api/schema";
import { Distribution } from "../charts/Distribution";
import { byteSize } from "../parts/units";
import { SERIES } from "./series";

/** Draw the distribution of flow sizes, a curve a type. */
export function SizeChart({ learnt }: { learnt: LearntTypes }) {
  const curves = useMemo(
    () =>
      learnt.types.map((type, index) => ({
        name: `type ${index}`,
        ...SERIES[index % SERIES.length]!,
        points: type.cdf.map(
          (share, place) => [Math.max(1, learnt.points_bytes[place] ?? 1), share] as const,
        ),
      })),
    [learnt],
  );
  return (
    <Distribution title="Share of flows up to a size" of="flow size" format={byteSize} curves={curves} />
  );
}
