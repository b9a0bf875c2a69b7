import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { useWidth } from "../parts/useWidth";
import { draw } from "./draw";
import type { Frame } from "./frame";
import { places } from "./layout";
import type { Trace } from "./trace";

const HEIGHT = 460;

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
  const canvas = useRef<HTMLCanvasElement>(null);
  const where = useMemo(() => places(trace), [trace]);
  const theme = useSyncExternalStore(onThemeChange, () => document.documentElement.dataset["theme"]);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const scale = window.devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    draw(context, { trace, places: where, frame, width, height: HEIGHT, flow, colour });
  }, [trace, where, frame, width, flow, theme]);
  const scale = window.devicePixelRatio || 1;
  return (
    <div ref={box} className="replay-fabric">
      <canvas
        ref={canvas}
        width={Math.round(width * scale)}
        height={HEIGHT * scale}
        style={{ width, height: HEIGHT }}
        role="img"
        aria-label={description}
      />
    </div>
  );
}

function onThemeChange(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}
