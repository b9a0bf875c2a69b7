import { Progress } from "@mantine/core";

/** Draw a share as a bar beside its figure, which says the same. */
export function Gauge({ share, bad = false }: { share: number; bad?: boolean }) {
  return (
    <Progress
      value={Math.min(100, 100 * share)}
      color={bad ? "var(--u4)" : "var(--series-0)"}
      size="md"
      radius="xs"
      w="clamp(64px, 12vw - 90px, 240px)"
      aria-hidden="true"
      style={{ display: "inline-flex", verticalAlign: "middle" }}
    />
  );
}
