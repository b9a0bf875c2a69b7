/** What the controller found wrong with a submission, in the words of the form. */

import { RefusedError } from "../api/client";
import type { CheckView, WrongView } from "../api/schema";

/** Return the problems that a refusal names, or null where there was none. */
export function problemsOf(error: Error | null): WrongView[] | null {
  if (!(error instanceof RefusedError)) return null;
  const all = error.problem["problems"];
  if (Array.isArray(all)) return all as WrongView[];
  return [{ field: error.field ?? "", message: error.message, line: null, column: null }];
}

/**
 * Return what the form shows as wrong, and whether it may be sent. *begun*: why it was not taken when it was sent;
 * *check*, *unchecked*: what its check found, or why there was none. Only what the check found needs a change first:
 * after a refusal, or without an answer, it may be sent again.
 */
export function verdictOf(
  begun: Error | null,
  check: Pick<CheckView, "problems"> | undefined,
  unchecked: Error | null,
): { problems: readonly WrongView[]; mayBegin: boolean } {
  const found = check?.problems ?? [];
  return {
    problems: problemsOf(begun) ?? (check ? found : (problemsOf(unchecked) ?? [])),
    mayBegin: found.length === 0,
  };
}

/** Return the spec's own name of a field: the controller names it from the body of the request on. */
export function fieldOf(problem: WrongView): string {
  return problem.field.replace(/^body\.?/, "").replace(/^(preset|text|spec|set)(\.|$)/, "");
}

/** Return those problems that are about *field*, or about a part of it. */
export function about(problems: readonly WrongView[], field: string): WrongView[] {
  if (field === "") return [];
  return problems.filter((problem) => {
    const name = fieldOf(problem);
    return name === field || name.startsWith(`${field}.`) || name.startsWith(`${field}[`);
  });
}

/** Return the offsets at which line *number* (from 1) of *text* begins and ends. */
export function lineOf(text: string, number: number): [number, number] {
  const lines = text.split("\n");
  const index = Math.min(Math.max(1, number), lines.length) - 1;
  const start = lines.slice(0, index).reduce((sum, line) => sum + line.length + 1, 0);
  return [start, start + (lines[index]?.length ?? 0)];
}
