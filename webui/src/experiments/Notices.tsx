import { List } from "@mantine/core";
import { Notice } from "../parts/Notice";
import { count } from "../parts/units";
import type { ResultDocument, SweepDocument } from "./types";

/** So many are shown: each run may have several. */
const SHOWN = 12;

/** Return what a reader of a result has to know: its notices, or those of a sweep's points, each once. */
function noticesOf(summary: unknown): string[] {
  const { notices, points } = (summary ?? {}) as ResultDocument & SweepDocument;
  const all = [notices ?? [], ...(points ?? []).map((point) => point.notices ?? [])].flat();
  return [...new Set(all.filter((notice) => typeof notice === "string"))]; // other programs store results, too
}

/** Show what a reader of the result *summary* has to know; nothing where there is nothing. */
export function Notices({ summary }: { summary: unknown }) {
  const notices = noticesOf(summary);
  if (notices.length === 0) return null;
  const more = notices.length - SHOWN;
  return (
    <Notice title="What to know about these results">
      <List size="sm">
        {notices.slice(0, SHOWN).map((notice) => (
          <List.Item key={notice}>{notice}</List.Item>
        ))}
        {more > 0 && <List.Item>{count(more, "more note")} in the file Results (JSON)</List.Item>}
      </List>
    </Notice>
  );
}
