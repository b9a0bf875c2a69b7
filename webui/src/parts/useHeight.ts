import { useViewportSize } from "@mantine/hooks";

/** Return a drawing's height in pixels: the window's height less *rest*, within bounds. */
export function useHeight(least: number, most: number, rest: number): number {
  const { height } = useViewportSize();
  return Math.round(Math.min(most, Math.max(least, height - rest)));
}
