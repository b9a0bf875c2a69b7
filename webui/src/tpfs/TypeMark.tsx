import { MARKER_PATHS } from "../parts/marker";
import { SERIES } from "./series";

/** The colour and marker of a type, as the charts have them. */
export function TypeMark({ index }: { index: number }) {
  const { className, marker } = SERIES[index % SERIES.length]!;
  return (
    <svg className="type-mark" viewBox="-8 -8 16 16" width={16} height={16} aria-hidden="true">
      <g className={className}>
        <path className="mark" transform="scale(6)" d={MARKER_PATHS[marker]} />
      </g>
    </svg>
  );
}
