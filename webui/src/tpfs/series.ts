/** Types are no schemes: they have series of their own, each with a colour, dashes and a marker. */
export const SERIES: readonly { className: string; marker: string }[] = [
  { className: "series-0", marker: "o" },
  { className: "series-1", marker: "s" },
  { className: "series-2", marker: "^" },
  { className: "series-3", marker: "D" },
  { className: "series-4", marker: "v" },
  { className: "series-5", marker: "P" },
];
