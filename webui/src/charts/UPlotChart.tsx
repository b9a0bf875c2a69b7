import { useLayoutEffect, useRef } from "react";
import uPlot from "uplot";
import { useAppearance } from "../app/Appearance";
import styles from "./charts.module.css";

/** Colours and sizes of a chart, read from the page. */
export interface Look {
  colour: (variable: string) => string;
  /** Of letters and lines, 1 but for a room. */
  scale: number;
  axis: Pick<uPlot.Axis, "stroke" | "font" | "grid" | "ticks">;
}

interface Props {
  data: uPlot.AlignedData;
  /** All but its size. It is asked again only when *structure* or the appearance changes. */
  options: (look: Look) => Omit<uPlot.Options, "width" | "height">;
  /** What the options depend on, as text. */
  structure: string;
  height: number;
}

/** In the legend each series has a mark of its own colour. */
const MARKS: uPlot.Legend = {
  markers: {
    width: 1,
    stroke: () => "var(--scheme-edge)",
    fill: (chart, index) => {
      const stroke = chart.series[index]?.stroke;
      return String(typeof stroke === "function" ? stroke(chart, index) : stroke);
    },
  },
};

function look(scale: number): Look {
  const page = getComputedStyle(document.documentElement);
  const colour = (variable: string): string => page.getPropertyValue(variable).trim();
  const rule = { stroke: colour("--rule"), width: 1 };
  return {
    colour,
    scale,
    axis: { stroke: colour("--ink"), font: `${13 * scale}px system-ui`, grid: rule, ticks: rule },
  };
}

/** Draw a chart of uPlot, as wide as its place; its legend shows the values under the pointer. */
export function UPlotChart({ data, options, structure, height }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(data);
  latest.current = data;
  const { name, scale } = useAppearance();
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(
      { ...options(look(scale)), legend: MARKS, width: element.clientWidth || 300, height: height * scale },
      latest.current,
      element,
    );
    chart.current = made;
    const observer = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && width !== made.width) made.setSize({ width, height: height * scale });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
    };
    // The options follow from these alone.
  }, [structure, name, scale, height]);
  useLayoutEffect(() => {
    chart.current?.setData(data);
  }, [data]);
  return <div ref={place} className={styles["plot"]} aria-hidden="true" />;
}
