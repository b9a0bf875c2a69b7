/** What a row of the evidence says, in words. */

import type { EvidenceRowView, FoundView, RatioView } from "../api/schema";
import { ratioText } from "../parts/units";

const WORDS: Readonly<Record<FoundView["verdict"], string>> = {
  holds: "✓ holds",
  more: "✓ more than the paper says",
  "in part": "◐ holds in part",
  not: "✕ does not hold",
  open: "◌ open: the intervals decide nothing",
  "no figure": "– no figure: too few flows, or limited by the processors",
  "not simulated": "– the simulator cannot do it",
  "simulated only": "– simulated only",
  "not run": "– not run yet",
};

/** Return a claim's verdict, and its ratios with their intervals: of each point of a sweep. */
export function foundWords({ verdict, figures, note }: FoundView): { verdict: string; detail: string } {
  const ratios = figures.map(ratioWords).join("; ");
  return { verdict: WORDS[verdict], detail: ratios + (note && (ratios ? ` (${note})` : note)) };
}

/** Return a ratio with its interval in words: `load = 0.3: 0.35 (0.19 to 0.81)`. */
function ratioWords({ point, ratio, low, high }: RatioView): string {
  const interval = low === null || high === null ? "" : ` (${ratioText(low)} to ${ratioText(high)})`;
  return `${point && `${point}: `}${ratioText(ratio)}${interval}`;
}

/** Return both kinds of run that a row is of. */
export const places = (row: EvidenceRowView): readonly (readonly [string, FoundView])[] => [
  ["In simulation", row.simulated],
  ["On switches", row.on_switches],
];

export interface Piece {
  text: string;
  code: boolean;
}

/** Return a sentence in Markdown without its links, which lead to files of the checkout. */
export function pieces(markdown: string): Piece[] {
  const plain = markdown.replace(/\[([^\]]+)\]\([^)]+\)/g, "$1");
  return plain
    .split(/`([^`]+)`/)
    .map((text, index) => ({ text, code: index % 2 === 1 }))
    .filter((piece) => piece.text !== "");
}
