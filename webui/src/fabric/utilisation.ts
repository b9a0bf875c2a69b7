/** Steps of utilisation: each has a colour, a width and words, so that none of them is needed alone. */

export interface Step {
  /** Least share of the link's rate. */
  from: number;
  words: string;
  /** Of the line, in units of the drawing. */
  width: number;
}

export const STEPS: readonly Step[] = [
  { from: 0, words: "idle (below 2 %)", width: 1 },
  { from: 0.02, words: "2 to 25 %", width: 2 },
  { from: 0.25, words: "25 to 50 %", width: 3.2 },
  { from: 0.5, words: "50 to 80 %", width: 4.6 },
  { from: 0.8, words: "80 % and more", width: 6.2 },
];

/** Return the number of the step of *share* (0..1, may be slightly more). */
export function stepOf(share: number): number {
  let step = 0;
  STEPS.forEach((candidate, index) => {
    if (share >= candidate.from) step = index;
  });
  return step;
}
