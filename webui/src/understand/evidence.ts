/** Claims about a scheme, of presets, and what kept experiments found of them. */

import type { PresetClaim, PresetView } from "../api/schema";
import type { Claim, Experiment, Finding, ResultDocument, SweepDocument } from "../experiments/types";

/** Claims that are about *scheme*, with the preset that has each; those in which it is the better one first. */
export function claimsOf(
  presets: readonly PresetView[],
  scheme: string,
): { claim: PresetClaim; preset: string }[] {
  const all = presets.flatMap((preset) => preset.claims.map((claim) => ({ claim, preset: preset.name })));
  return [
    ...all.filter(({ claim }) => claim.scheme === scheme),
    ...all.filter(({ claim }) => claim.against === scheme),
  ];
}

/** A claim's findings: none, one, or one of each point of a sweep. */
export function asList(ours: Claim["ours"]): readonly Finding[] {
  if (ours == null) return [];
  return "verdict" in ours ? [ours] : ours;
}

/** What *experiments* found of *claim*: a finding of each, or of each point of a sweep. */
export function findingsOf(
  experiments: readonly Experiment[],
  claim: PresetClaim,
): { experiment: number; finding: Finding }[] {
  return experiments.flatMap((experiment) => {
    const summary = (experiment.summary ?? {}) as ResultDocument & SweepDocument;
    const ids = (summary.points ?? []).map((point) => point.experiment);
    return (summary.claims ?? [])
      .filter((known) => known.text === claim.text)
      .flatMap(({ ours }) =>
        asList(ours).map((finding, index) => ({
          experiment: (Array.isArray(ours) && ids[index]) || experiment.id,
          finding,
        })),
      );
  });
}
