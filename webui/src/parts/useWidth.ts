import { useElementSize } from "@mantine/hooks";
import type { RefCallback } from "react";

/**
 * Return a reference to an element, and its width in pixels; *first* until it is known. Drawings of that width keep the
 * size of their text.
 */
export function useWidth<T extends Element>(first: number): [RefCallback<T | null>, number] {
  const { ref, width } = useElementSize<T & HTMLElement>();
  return [ref as RefCallback<T | null>, width > 0 ? Math.round(width) : first];
}
