/** Types are no schemes: they have series of their own, each with a colour and a marker. */
export const SERIES: readonly { colour: string; marker: string }[] = ["o", "s", "^", "D", "v", "P"].map(
  (marker, index) => ({ colour: `--series-${index}`, marker }),
);
