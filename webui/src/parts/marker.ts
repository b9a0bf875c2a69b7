/** Shapes that distinguish schemes without colour: matplotlib's markers as SVG paths around 0, 0. */

const star = (points: number, inner: number): string =>
  polygon(points * 2, (index) => (index % 2 === 0 ? 1 : inner), -90);

function polygon(corners: number, radius: (index: number) => number, turn: number): string {
  const path = Array.from({ length: corners }, (_, index) => {
    const angle = ((turn + (360 * index) / corners) * Math.PI) / 180;
    return `${(radius(index) * Math.cos(angle)).toFixed(3)},${(radius(index) * Math.sin(angle)).toFixed(3)}`;
  });
  return `M${path.join("L")}Z`;
}

const unit = (): number => 1;

/** In units of the marker's radius. */
export const MARKER_PATHS: Readonly<Record<string, string>> = {
  o: "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0Z",
  s: "M-.85,-.85H.85V.85H-.85Z",
  D: "M0,-1.1L1.1,0L0,1.1L-1.1,0Z",
  "^": polygon(3, unit, -90),
  v: polygon(3, unit, 90),
  "<": polygon(3, unit, 180),
  ">": polygon(3, unit, 0),
  P: "M-.35,-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z",
  X: "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z",
  "*": star(5, 0.45),
  p: polygon(5, unit, -90),
  h: polygon(6, unit, -90),
  H: polygon(6, unit, 0),
};

/** Return the shape of a marker; a circle for an unknown marker. */
export const markerPath = (marker: string): string => MARKER_PATHS[marker] ?? MARKER_PATHS["o"] ?? "";
