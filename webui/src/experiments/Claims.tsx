import { List, Text } from "@mantine/core";
import { Panel } from "../parts/Panel";
import { asList } from "../understand/evidence";
import type { Claim, ClaimVerdict } from "./types";

const SIGNS: Readonly<Record<ClaimVerdict["verdict"], string>> = {
  seen: "✓ seen here",
  more: "✓ more than the paper says",
  "not seen": "✕ not seen here",
  open: "◌ open: the interval has both",
  "no figure": "– no figure here",
};

/** Show what papers claim beside what was measured. */
export function Claims({ claims }: { claims: readonly Claim[] }) {
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
              <Verdict key={point} finding={finding} alone={claim.compare?.against === ""} />
            ))}
          </List.Item>
        ))}
      </List>
    </Panel>
  );
}

/** Show whether a claim was confirmed, with the ratio that decides it; of a scheme *alone*: its share. */
export function Verdict({ finding, alone = false }: { finding: ClaimVerdict; alone?: boolean }) {
  return (
    <Text>
      <strong>{SIGNS[finding.verdict]}</strong>
      {finding.ratio !== null &&
        ` ${alone ? "share" : "ratio"} ${finding.ratio.toFixed(2)}${alone ? " %" : ""}`}
      {finding.interval && ` (95 %: ${finding.interval.map((bound) => bound.toFixed(2)).join(" to ")})`}
      {finding.why && `; ${finding.why}`}
    </Text>
  );
}
