import { useViewportSize } from "@mantine/hooks";

/** A drawing's height in pixels: what the window has beyond *rest*, within bounds. */
export function useHeight(least: number, most: number, rest: number): number {
  const { height } = useViewportSize();
  return Math.round(Math.min(most, Math.max(least, height - rest)));
}
