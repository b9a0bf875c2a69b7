import * as Plot from "@observablehq/plot";
import { useEffect, useRef } from "react";
import { useScale } from "../app/Appearance";
import { useWidth } from "../parts/useWidth";
import styles from "./charts.module.css";

interface Props {
  /** In words, for those who do not see it. */
  label: string;
  /** All but its width, for a scale of letters and that width in pixels. */
  options: (scale: number, width: number) => Plot.PlotOptions;
}

/** Draw a chart of Observable Plot, as wide as its place; values are shown under the pointer. */
export function PlotFigure({ label, options }: Props) {
  const [place, width] = useWidth<HTMLDivElement>(0);
  const scale = useScale();
  const drawn = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (width === 0) return;
    const plot = Plot.plot({
      style: { fontSize: `${13 * scale}px`, background: "none", overflow: "visible" },
      ...options(scale, width),
      width,
    });
    drawn.current?.replaceChildren(plot);
  }, [width, scale, options]);
  return (
    <div ref={place} role="img" aria-label={label} className={styles["figure"]}>
      <div ref={drawn} aria-hidden="true" />
    </div>
  );
}
