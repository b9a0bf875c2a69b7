const FEW = [1, 2, 5];
const ALL = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/**
 * Return the labelled values of a logarithmic axis from *low* to *high*: 1, 2 and 5 of each decade, or all digits of a
 * short one; none from 0 on, whose decades have no end.
 */
export function roundValues(low: number, high: number): number[] {
  if (!(low > 0)) return [];
  const of = (digits: readonly number[]): number[] => {
    const values: number[] = [];
    for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); decade += 1)
      for (const digit of digits) values.push(digit * 10 ** decade);
    return values.filter((value) => value >= low && value <= high);
  };
  const few = of(FEW);
  return few.length > 2 ? few : of(ALL);
}

/**
 * Return *places* with null for those whose labels do not fit beside the others. *at*: pixels of a place; *width*: of
 * its label.
 */
export function fitting(
  places: readonly number[],
  at: (place: number) => number,
  width: (place: number) => number,
  gap: number,
): (number | null)[] {
  let end = Number.NEGATIVE_INFINITY;
  return places.map((place) => {
    const half = width(place) / 2;
    if (at(place) - half < end) return null;
    end = at(place) + half + gap;
    return place;
  });
}

/** Pixels of a letter beside a chart, or a little more, and those between the longest label and its bar. */
const LETTER = 8;
const GAP = 16;
/** Labels take no more of a chart's width. */
const MOST_OF_WIDTH = 0.5;

/**
 * Return the room for *labels* at the left of a chart *width* pixels wide: its margin in pixels, and the letters of a
 * label that fit there (the rest is cut).
 */
export function labelRoom(
  labels: readonly string[],
  scale: number,
  width: number,
): { margin: number; letters: number } {
  const wanted = (Math.max(0, ...labels.map((label) => label.length)) * LETTER + GAP) * scale;
  const margin = Math.min(wanted, width * MOST_OF_WIDTH);
  return { margin, letters: Math.floor((margin / scale - GAP) / LETTER) };
}

/** Return *label* in at most *letters* letters. */
export const cut = (label: string, letters: number): string =>
  label.length <= letters ? label : `${label.slice(0, Math.max(1, letters - 1))}…`;

/**
 * Return *labels* in at most *letters* letters each: their beginnings or, where these are the same, their ends.
 */
export function cutApart(labels: readonly string[], letters: number): string[] {
  const beginnings = labels.map((label) => cut(label, letters));
  if (new Set(beginnings).size === new Set(labels).size) return beginnings;
  return labels.map((label) =>
    label.length <= letters ? label : `…${label.slice(-Math.max(1, letters - 1))}`,
  );
}

/** Return *text* without trailing zeros: `100 ms` for `100.0 ms`. */
export const short = (text: string): string => text.replace(/\.0+ /, " ");
