import { useElementSize } from "@mantine/hooks";
import type { RefCallback } from "react";

/** The width in pixels that an element has; *first* until it is known. Drawings of that width keep their text's size. */
export function useWidth<T extends Element>(first: number): [RefCallback<T | null>, number] {
  const { ref, width } = useElementSize<T & HTMLElement>();
  return [ref as RefCallback<T | null>, width > 0 ? Math.round(width) : first];
}
