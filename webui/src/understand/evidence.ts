/** Claims about a scheme, of presets, and what kept experiments found of them. */

import type { EvidenceClaim } from "../api/schema";
import type { Claim, Experiment, ClaimVerdict, ResultDocument, SweepDocument } from "../experiments/types";

/** What a claim is about. */
type About = Pick<EvidenceClaim, "text" | "scheme" | "against">;

/** Return claims that are about *scheme*; those in which it is the better one first. */
export function claimsOf<C extends About>(claims: readonly C[], scheme: string): C[] {
  return [
    ...claims.filter((claim) => claim.scheme === scheme),
    ...claims.filter((claim) => claim.against === scheme && claim.scheme !== scheme),
  ];
}

/** Return a claim's findings: none, one, or one of each point of a sweep. */
export function asList(ours: Claim["ours"]): readonly ClaimVerdict[] {
  if (ours == null) return [];
  return "verdict" in ours ? [ours] : ours;
}

/**
 * Return true if *known*, of a result, is the preset's *claim*: presets share texts, and a text may be about several
 * pairs.
 */
const isOf = (claim: About, { text, compare }: Claim): boolean =>
  text === claim.text && compare?.scheme === claim.scheme && compare.against === claim.against;

/** Return what *experiments* of *preset* found of its *claim*: a finding of each, or of each point of a sweep. */
export function findingsOf(
  experiments: readonly Experiment[],
  preset: string,
  claim: About,
): { experiment: number; finding: ClaimVerdict }[] {
  const ofPreset = experiments.filter((experiment) => experiment.name === preset);
  return ofPreset.flatMap((experiment) => {
    const summary = (experiment.summary ?? {}) as ResultDocument & SweepDocument;
    const ids = (summary.points ?? []).map((point) => point.experiment);
    return (summary.claims ?? [])
      .filter((known) => isOf(claim, known))
      .flatMap(({ ours }) =>
        asList(ours).map((finding, index) => ({
          experiment: (Array.isArray(ours) && ids[index]) || experiment.id,
          finding,
        })),
      );
  });
}
