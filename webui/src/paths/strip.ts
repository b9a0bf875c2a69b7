/** Which steps of a flow's timeline are drawn. */

import type { FlowStep, FlowDetail } from "../api/schema";
import type { Mode } from "../api/types";

export interface VisibleSteps {
  steps: readonly FlowStep[];
  /** Unix seconds of the left and right edge; null without steps. */
  from: number | null;
  to: number | null;
  /** Length of a step in seconds. */
  stepS: number;
}

const STEP_S = 0.5;

/** Return the last *number* steps. */
export function visibleSteps(timeline: readonly FlowStep[], number: number): VisibleSteps {
  const steps = timeline.slice(-number);
  const first = steps[0];
  const last = steps.at(-1);
  if (!first || !last) return { steps: [], from: null, to: null, stepS: STEP_S };
  return { steps, from: first.at - STEP_S, to: last.at, stepS: STEP_S };
}

export interface ModeSpan {
  from: number;
  to: number;
  mode: Mode;
}

/**
 * Return the modes of the leaf at which the flow starts, for every part of *from* to *to* for which a mode is known.
 */
export function modeSpans(detail: Pick<FlowDetail, "modes" | "paths">, from: number, to: number): ModeSpan[] {
  const leaf = detail.paths[0]?.switches[0];
  const changes = detail.modes.filter((mode) => mode.leaf === leaf).sort((left, right) => left.at - right.at);
  const spans: ModeSpan[] = [];
  changes.forEach((change, index) => {
    const span = {
      from: Math.max(from, change.at),
      to: Math.min(to, changes[index + 1]?.at ?? to),
      mode: change.mode,
    };
    if (span.to > span.from) spans.push(span);
  });
  return spans;
}
