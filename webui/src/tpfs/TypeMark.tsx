import { Marker } from "../parts/SchemeMark";
import { SERIES } from "./series";

/** Show the colour and marker of a type, as the charts have them. */
export function TypeMark({ index }: { index: number }) {
  const { colour, marker } = SERIES[index % SERIES.length]!;
  return <Marker shape={marker} colour={`var(${colour})`} />;
}
