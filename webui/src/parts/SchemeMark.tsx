import { MARKER_PATHS } from "./marker";
import { schemeStyle, type SchemeStyle } from "./schemes";

/** Show a scheme's name, or the label of a result, with its marker, as in all figures; *style*: that of the label. */
export function SchemeMark({ name, style }: { name: string; style?: SchemeStyle | undefined }) {
  const { colour, marker } = style ?? schemeStyle(name);
  return (
    <strong data-scheme={name} style={{ whiteSpace: "nowrap" }}>
      <Marker shape={marker} colour={colour} /> {name}
    </strong>
  );
}

/** Draw a marker as charts have it. */
export function Marker({ shape, colour }: { shape: string; colour: string }) {
  return (
    <svg viewBox="-1.3 -1.3 2.6 2.6" width="0.85em" height="0.85em" aria-hidden="true">
      <path d={MARKER_PATHS[shape]} fill={colour} stroke="var(--scheme-edge)" strokeWidth={0.28} />
    </svg>
  );
}
