/** Where thresholds are drawn: those that would lie upon each other are one mark. */

export interface Mark {
  /** Of the first queue that it leads to, and the last: `2`, `4–7`. */
  label: string;
  at: number;
  /** Bytes of the first threshold in it, and the last. */
  from: number;
  to: number;
}

/** Return marks of ascending *thresholds* (bytes), at least *apart* pixels from each other where *x* puts them. */
export function marks(thresholds: readonly number[], x: (bytes: number) => number, apart: number): Mark[] {
  const groups: { first: number; last: number }[] = [];
  thresholds.forEach((threshold, index) => {
    const group = groups.at(-1);
    if (group && x(threshold) - x(thresholds[group.last] ?? threshold) < apart) group.last = index;
    else groups.push({ first: index, last: index });
  });
  return groups.map(({ first, last }) => {
    const [from, to] = [thresholds[first] ?? 0, thresholds[last] ?? 0];
    const label = first === last ? `${first + 1}` : `${first + 1}–${last + 1}`;
    return { label, at: (x(from) + x(to)) / 2, from, to };
  });
}
