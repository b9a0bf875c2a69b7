import { List, Text } from "@mantine/core";
import { Panel } from "../parts/Panel";
import { ratioText } from "../parts/units";
import { asList } from "../understand/evidence";
import type { Claim, ClaimVerdict } from "./types";

const SIGNS: Readonly<Record<ClaimVerdict["verdict"], string>> = {
  seen: "✓ seen here",
  more: "✓ more than the paper says",
  "not seen": "✕ not seen here",
  open: "◌ open: the interval has both",
  "no figure": "– no figure here",
};

/** Show what papers claim beside what was measured. *points*: those of a sweep in words, of each of which a claim may be. */
export function Claims({ claims, points = [] }: { claims: readonly Claim[]; points?: readonly string[] }) {
  if (claims.length === 0) return null;
  return (
    <Panel title="What the papers claim">
      <List size="sm" spacing="xs">
        {claims.map((claim, index) => (
          <List.Item key={index}>
            {claim.text}{" "}
            <Text span c="dimmed">
              {[claim.source, claim.figure].filter(Boolean).join(", ")}
            </Text>
            {asList(claim.ours).map((finding, point) => (
              <Verdict
                key={point}
                finding={finding}
                alone={claim.compare?.against === ""}
                at={Array.isArray(claim.ours) ? points[point] : undefined}
              />
            ))}
          </List.Item>
        ))}
      </List>
    </Panel>
  );
}

/** Show whether a claim was confirmed, with the ratio that decides it; of a scheme *alone*: its share. *at*: where. */
export function Verdict({
  finding,
  alone = false,
  at,
}: {
  finding: ClaimVerdict;
  alone?: boolean;
  at?: string | undefined;
}) {
  const unit = alone ? " %" : "";
  return (
    <Text>
      {at && `${at}: `}
      <strong>{SIGNS[finding.verdict]}</strong>
      {finding.ratio !== null && ` ${alone ? "share" : "ratio"} ${ratioText(finding.ratio)}${unit}`}
      {finding.interval &&
        ` (95 %: ${finding.interval.map((bound) => ratioText(bound) + unit).join(" to ")})`}
      {finding.why && `; ${finding.why}`}
    </Text>
  );
}
