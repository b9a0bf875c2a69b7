import { MARKER_PATHS } from "./marker";
import { schemeStyle } from "./schemes";

/** A scheme's name with its marker, as in all figures. */
export function SchemeMark({ name }: { name: string }) {
  const { colour, marker } = schemeStyle(name);
  return (
    <span className="scheme-mark">
      <svg viewBox="-1.3 -1.3 2.6 2.6" width="13" height="13" aria-hidden="true">
        <path d={MARKER_PATHS[marker]} fill={colour} className="scheme-shape" />
      </svg>
      {name}
    </span>
  );
}
