import { List, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { get } from "../api/client";
import { useHas } from "../api/queries";
import { Link } from "../app/Link";
import { Verdict } from "../experiments/Claims";
import { useExperiments, usePresets } from "../experiments/queries";
import type { Experiment } from "../experiments/types";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { claimsOf, findingsOf } from "./evidence";

/** Kept experiments that are looked through, the newest. */
const LOOKED_AT = 20;

/** What papers claim of a scheme, each with what experiments here gave; or with the preset that would. */
export function Evidence({ scheme }: { scheme: string }) {
  const queue = useHas("/specs");
  return (
    <Panel title="What its paper claims, and what was measured here">
      {queue === false ? (
        <Quiet>
          Claims are part of presets, which a controller with a queue has (./capstan serve --experiments);
          figures of whole presets are in docs/results.md.
        </Quiet>
      ) : (
        queue && <ClaimList scheme={scheme} />
      )}
    </Panel>
  );
}

function ClaimList({ scheme }: { scheme: string }) {
  const presets = usePresets().data?.presets ?? [];
  const claims = claimsOf(presets, scheme);
  const finished = (useExperiments().data?.pages ?? [])
    .flatMap((page) => page.experiments)
    .filter((experiment) => experiment.state === "finished")
    .slice(0, LOOKED_AT);
  const kept = useQueries({
    queries: finished.map(({ id }) => ({
      queryKey: ["experiments", id],
      queryFn: ({ signal }: { signal: AbortSignal }) => get<Experiment>(`/experiments/${id}`, signal),
      staleTime: Number.POSITIVE_INFINITY,
    })),
  }).flatMap((query) => query.data ?? []);
  if (claims.length === 0) return <Quiet>No preset has a claim about it.</Quiet>;
  return (
    <List size="sm" spacing="sm">
      {claims.map(({ claim, preset }) => {
        const findings = findingsOf(kept, claim);
        return (
          <List.Item key={`${preset} ${claim.text}`}>
            {claim.text}{" "}
            <Text span c="dimmed">
              {[claim.source, claim.figure].filter(Boolean).join(", ")}
            </Text>
            {findings.map(({ experiment, finding }) => (
              <div key={experiment}>
                <Verdict finding={finding} />
                <Link href={`/compare/${experiment}`}>experiment {experiment}</Link>
              </div>
            ))}
            {findings.length === 0 && (
              <Text>
                Not measured here yet: <Link href={`/compare?preset=${preset}`}>begin {preset}</Link>
              </Text>
            )}
          </List.Item>
        );
      })}
    </List>
  );
}
