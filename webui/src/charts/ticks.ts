/** 1, 2 and 5 of each decade between *low* and *high*: where a logarithmic axis has its labels. */
export function roundValues(low: number, high: number): number[] {
  const values: number[] = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); decade += 1)
    for (const digit of [1, 2, 5]) values.push(digit * 10 ** decade);
  return values.filter((value) => value >= low && value <= high);
}

/**
 * Those of *places* whose labels fit beside each other, null for the others. *at*: pixels of a place; *width*: of its label.
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

/** `100 ms` for `100.0 ms`. */
export const short = (text: string): string => text.replace(/\.0+ /, " ");
