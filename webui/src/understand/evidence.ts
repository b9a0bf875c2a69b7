/** Claims about a scheme, of presets, and what kept experiments found of them. */

import type { EvidenceClaim, ExperimentHead } from "../api/schema";
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

/** Experiments that are looked through at most. */
const LOOKED_AT = 20;

/** Return the newest of *experiments*, newest first, that may have findings on *claims*: finished ones of their presets. */
export function newestOf(
  experiments: readonly ExperimentHead[],
  claims: readonly Pick<EvidenceClaim, "preset">[],
): ExperimentHead[] {
  const presets = new Set(claims.map(({ preset }) => preset));
  return experiments
    .filter(({ state, name }) => state === "finished" && presets.has(name))
    .slice(0, LOOKED_AT);
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
