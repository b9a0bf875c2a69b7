/** Compare names, numbers in them as numbers. Made once: to compare by `localeCompare` takes ten times as long. */
export const natural = new Intl.Collator("en", { numeric: true }).compare;
