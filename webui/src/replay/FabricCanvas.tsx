import { Paper } from "@mantine/core";
import { useEffect, useMemo, useRef } from "react";
import { useAppearance } from "../app/Appearance";
import { useHeight } from "../parts/useHeight";
import { useWidth } from "../parts/useWidth";
import { draw } from "./draw";
import type { Frame } from "./frame";
import { places } from "./layout";
import type { Trace } from "./trace";

const LEAST = 460;
const MOST = 760;
/** Pixels of the page above and below the fabric. */
const AROUND = 420;

/** The fabric at one instant. *description*: what it shows, in words. */
export function FabricCanvas({
  trace,
  frame,
  flow,
  description,
}: {
  trace: Trace;
  frame: Frame;
  flow: number | null;
  description: string;
}) {
  const [box, width] = useWidth<HTMLDivElement>(900);
  const height = useHeight(LEAST, MOST, AROUND);
  const canvas = useRef<HTMLCanvasElement>(null);
  const where = useMemo(() => places(trace), [trace]);
  const { name: appearance } = useAppearance();
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const scale = window.devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    draw(context, { trace, places: where, frame, width, height, flow, colour });
  }, [trace, where, frame, width, height, flow, appearance]);
  const scale = window.devicePixelRatio || 1;
  return (
    <Paper ref={box} withBorder bg="var(--card)" style={{ overflow: "hidden" }}>
      <canvas
        ref={canvas}
        width={Math.round(width * scale)}
        height={Math.round(height * scale)}
        style={{ width, height }}
        role="img"
        aria-label={description}
      />
    </Paper>
  );
}
