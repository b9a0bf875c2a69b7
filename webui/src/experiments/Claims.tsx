import type { Claim, Finding } from "./types";

const SIGNS: Readonly<Record<Finding["verdict"], string>> = {
  seen: "✓ seen here",
  "not seen": "✕ not seen here",
  open: "◌ open: the interval has both",
  "no figure": "– no figure here",
};

/** What papers claim, beside what was measured. */
export function Claims({ claims }: { claims: readonly Claim[] }) {
  if (claims.length === 0) return null;
  return (
    <section aria-label="Claims">
      <h3>What the papers claim</h3>
      <ul className="claims">
        {claims.map((claim, index) => {
          const finding = claim.finding ?? claim.found ?? null;
          return (
            <li key={index}>
              {claim.text}{" "}
              <span className="quiet">{[claim.source, claim.figure].filter(Boolean).join(", ")}</span>
              {finding && (
                <div>
                  <strong>{SIGNS[finding.verdict]}</strong>
                  {finding.ratio !== null && ` ratio ${finding.ratio.toFixed(2)}`}
                  {finding.interval &&
                    ` (95 %: ${finding.interval.map((bound) => bound.toFixed(2)).join(" to ")})`}
                  {finding.why && `; ${finding.why}`}
                </div>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
