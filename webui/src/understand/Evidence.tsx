import { List, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { group } from "d3-array";
import { get } from "../api/client";
import { useHas } from "../api/queries";
import { Link } from "../app/Link";
import { Verdict } from "../experiments/Claims";
import { useExperiments, usePresets } from "../experiments/queries";
import type { Experiment } from "../experiments/types";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { claimsOf, findingsOf } from "./evidence";
import styles from "./understand.module.css";

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
      <Quiet>
        Every claim of every preset, simulated, and why it holds or not: docs/evidence.md, which ./capstan
        evidence writes.
      </Quiet>
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
    <div className={styles["claims"]} tabIndex={0} role="group" aria-label="Claims by preset">
      {[...group(claims, ({ preset }) => preset)].map(([preset, ofPreset]) => (
        <section key={preset}>
          <Text fw={600}>
            {preset}{" "}
            <Text span c="dimmed">
              {[...new Set(ofPreset.map(({ claim }) => claim.source))].filter(Boolean).join("; ")}
            </Text>
          </Text>
          <List size="sm" mb="sm">
            {ofPreset.map(({ claim }) => (
              <List.Item key={`${claim.text} ${claim.against}`}>
                {claim.text}{" "}
                <Text span c="dimmed">
                  {claim.figure}
                </Text>
                {findingsOf(kept, preset, claim).map(({ experiment, finding }) => (
                  <div key={experiment}>
                    <Verdict finding={finding} />
                    <Link href={`/compare/${experiment}`}>experiment {experiment}</Link>
                  </div>
                ))}
              </List.Item>
            ))}
          </List>
          {ofPreset.every(({ claim }) => findingsOf(kept, preset, claim).length === 0) && (
            <Text mb="sm">
              Not measured here yet: <Link href={`/compare?preset=${preset}`}>begin {preset}</Link>
            </Text>
          )}
        </section>
      ))}
    </div>
  );
}
