const FEW = [1, 2, 5];
const ALL = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/**
 * Return the labelled values of a logarithmic axis from *low* to *high*: 1, 2 and 5 of each decade, or all digits of a
 * short one.
 */
export function roundValues(low: number, high: number): number[] {
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

/** Return *text* without trailing zeros: `100 ms` for `100.0 ms`. */
export const short = (text: string): string => text.replace(/\.0+ /, " ");
