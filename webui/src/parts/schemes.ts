/** Colours, markers and hatches of schemes: those of figures/style.py (a test compares them). */

export interface SchemeStyle {
  colour: string;
  /** matplotlib's word for it. */
  marker: string;
}

const of = (colour: string, marker: string): SchemeStyle => ({ colour, marker });

export const SCHEMES: Readonly<Record<string, SchemeStyle>> = {
  ecmp: of("#000000", "o"),
  "ecmp-pq": of("#555555", "s"),
  plb: of("#8c8c8c", "^"),
  rps: of("#0072b2", "s"),
  "rps-inorder": of("#4a9bd4", "D"),
  "rps-pq": of("#003f6b", "^"),
  drb: of("#6f83d6", "v"),
  reps: of("#2b3f9e", "P"),
  presto: of("#009e73", "^"),
  letflow: of("#3b8132", "D"),
  caps: of("#d55e00", "D"),
  "caps-paper": of("#a33b1f", "o"),
  "caps-spray": of("#e8604c", "s"),
  "caps-dark": of("#6e1f10", "v"),
  "caps-reps": of("#b0184d", "P"),
  htpc: of("#b87a00", "v"),
  corrective: of("#8a6d1d", "X"),
  tr: of("#9b59b6", "P"),
  freeway: of("#c06aa0", "h"),
  repflow: of("#7a4b2a", "<"),
  repsyn: of("#a8795a", ">"),
  pias: of("#17868f", "*"),
  tpfs: of("#0b5c63", "p"),
  capton: of("#3e9c9c", "H"),
};

const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#9b59b6", "#000000", "#b87a00", "#17868f", "#d3476c"];
const MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"];

/** Styles for what has none, or would look like something else: all pairs of a colour and a marker. */
const SERIES = MARKERS.flatMap((_, turn) =>
  PALETTE.map((colour, index) => of(colour, MARKERS[(index + turn) % MARKERS.length] ?? "o")),
);

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

/** Return the CRC-32 of *text* in UTF-8 (zlib's). */
export function crc32(text: string): number {
  let crc = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) {
    crc = (CRC_TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/** Return the style of the scheme *name*; a scheme that is not Capstan's has a style derived from its name. */
export function schemeStyle(name: string): SchemeStyle {
  const known = SCHEMES[name];
  if (known) return known;
  const number = crc32(name);
  return of(PALETTE[number % 8] ?? "#000000", MARKERS[Math.floor(number / 8) % 8] ?? "o");
}

/** Labels of a result, each with its scheme. */
export type Labels = Readonly<Record<string, { scheme: string }>>;

/**
 * Return the styles of those labels whose scheme's style another label has already: of a scheme with two settings, the
 * second must not look like the first.
 */
function ownStyles(labels: Labels): ReadonlyMap<string, SchemeStyle> {
  const taken: SchemeStyle[] = [];
  const hasColour = ({ colour }: SchemeStyle): boolean => taken.some((other) => other.colour === colour);
  const isTaken = ({ colour, marker }: SchemeStyle): boolean =>
    taken.some((other) => other.colour === colour && other.marker === marker);
  const alike = Object.entries(labels).filter(([, { scheme }]) => {
    const style = schemeStyle(scheme);
    if (isTaken(style)) return true;
    taken.push(style);
    return false;
  });
  return new Map(
    alike.map(([label, { scheme }]) => {
      const free = SERIES.find((style) => !hasColour(style)) ?? SERIES.find((style) => !isTaken(style));
      const style = free ?? schemeStyle(scheme);
      taken.push(style);
      return [label, style];
    }),
  );
}

/** Return the style of each label: its scheme's, or its own where another label has that. */
export function stylesOf(labels: Labels): (label: string) => SchemeStyle {
  const own = ownStyles(labels);
  return (label) => own.get(label) ?? schemeStyle(labels[label]?.scheme ?? label);
}
