/** Claims about a scheme, of presets, and what kept experiments found of them. */

import type { PresetClaim, PresetView } from "../api/schema";
import type { Experiment, Finding, ResultDocument, SweepDocument } from "../experiments/types";

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

/** What *experiments* found of *claim*: a finding of each, or of each point of a sweep. */
export function findingsOf(
  experiments: readonly Experiment[],
  claim: PresetClaim,
): { experiment: number; finding: Finding }[] {
  return experiments.flatMap((experiment) => {
    const summary = (experiment.summary ?? {}) as ResultDocument & SweepDocument;
    const documents = summary.points ?? [{ ...summary, experiment: experiment.id }];
    return documents.flatMap((document) =>
      (document.claims ?? []).flatMap((known) => {
        const finding = known.finding ?? known.found;
        return known.text === claim.text && finding ? [{ experiment: document.experiment, finding }] : [];
      }),
    );
  });
}
