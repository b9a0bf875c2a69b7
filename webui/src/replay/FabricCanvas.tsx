import { Paper, Text } from "@mantine/core";
import { useEffect, useMemo, useRef, useState } from "react";
import { useAppearance } from "../app/Appearance";
import { useHeight } from "../parts/useHeight";
import { useWidth } from "../parts/useWidth";
import { draw } from "./draw";
import type { Frame } from "./frame";
import { type Point, places } from "./layout";
import { pointed } from "./pointed";
import type { Trace } from "./trace";

const LEAST = 460;
const MOST = 760;
/** Pixels of the page above and below the fabric. */
const AROUND = 450;

/** Draw the fabric at an instant, and below it what is under the pointer. *description*: what it shows, in words. */
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
  const [pointer, setPointer] = useState<Point | null>(null);
  const where = useMemo(() => places(trace), [trace]);
  const { name: appearance, scale } = useAppearance();
  const scene = useMemo(
    () => ({ trace, places: where, frame, width, height, scale }),
    [trace, where, frame, width, height, scale],
  );
  // Of the screen that the window is on: a canvas of another size is empty until it is drawn again.
  const pixels = window.devicePixelRatio || 1;
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    draw(context, { ...scene, flow, colour });
  }, [scene, flow, appearance, pixels]);
  return (
    <>
      <Paper ref={box} withBorder bg="var(--card)" style={{ overflow: "hidden" }}>
        <canvas
          ref={canvas}
          width={Math.round(width * pixels)}
          height={Math.round(height * pixels)}
          style={{ width, height, display: "block" }}
          role="img"
          aria-label={description}
          onPointerMove={({ nativeEvent: { offsetX, offsetY } }) => setPointer({ x: offsetX, y: offsetY })}
          onPointerLeave={() => setPointer(null)}
        />
      </Paper>
      <Text c="dimmed" mt={4} mih="1.55em" truncate data-testid="pointed">
        {(pointer && pointed(scene, pointer)) ?? "Under the pointer: a packet, or the queue of a port."}
      </Text>
    </>
  );
}
