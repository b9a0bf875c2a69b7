import { Anchor, Code, List, Text } from "@mantine/core";
import { useQueries, useQuery } from "@tanstack/react-query";
import { group } from "d3-array";
import { BASE, get } from "../api/client";
import { useHas } from "../api/queries";
import type { EvidenceClaim, EvidenceRowView, EvidenceView } from "../api/schema";
import { Link } from "../app/Link";
import { Verdict } from "../experiments/Claims";
import { useExperiments } from "../experiments/queries";
import type { Experiment } from "../experiments/types";
import { Command } from "../parts/Command";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { claimsOf, findingsOf, newestOf } from "./evidence";
import { foundWords, pieces, places } from "./rowWords";
import styles from "./understand.module.css";

/** Show what papers claim of a scheme, each with its outcome: in Capstan's evidence, and in experiments here. */
export function Evidence({ scheme }: { scheme: string }) {
  const there = useHas("/evidence");
  return (
    <Panel title="What its paper claims, and what was measured">
      {there === undefined ? (
        <Quiet>Asking for what this controller knows…</Quiet>
      ) : there === false ? (
        <Quiet>
          Claims are part of presets, which a controller with a queue has (
          <Command>./capstan serve --experiments</Command>, or <Command>./capstan page</Command>).
        </Quiet>
      ) : (
        <ClaimList scheme={scheme} />
      )}
    </Panel>
  );
}

function ClaimList({ scheme }: { scheme: string }) {
  const evidence = useQuery({
    queryKey: ["evidence"],
    queryFn: ({ signal }) => get<EvidenceView>("/evidence", signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <QueryResult query={evidence} subject="claims of the papers">
      {({ claims }) => {
        const mine = claimsOf(claims, scheme);
        return mine.length === 0 ? <Quiet>No preset has a claim about it.</Quiet> : <Claims claims={mine} />;
      }}
    </QueryResult>
  );
}

function Claims({ claims }: { claims: readonly EvidenceClaim[] }) {
  const listed = (useExperiments().data?.pages ?? []).flatMap((page) => page.experiments);
  const finished = newestOf(listed, claims);
  const experiments = useQueries({
    queries: finished.map(({ id }) => ({
      queryKey: ["experiments", id],
      queryFn: ({ signal }: { signal: AbortSignal }) => get<Experiment>(`/experiments/${id}`, signal),
      staleTime: Number.POSITIVE_INFINITY,
    })),
  }).flatMap((query) => query.data ?? []);
  return (
    <>
      <Quiet>
        Ratios of two schemes with their 95 % intervals, as they were measured when Capstan was made; below
        them those of experiments here. <Anchor href={`${BASE}/evidence`}>All claims (JSON)</Anchor>
      </Quiet>
      <div className={styles["claims"]} tabIndex={0} role="group" aria-label="Claims by preset">
        {[...group(claims, ({ preset }) => preset)].map(([preset, ofPreset]) => (
          <section key={preset}>
            <Text fw={600}>
              {preset}{" "}
              <Text span c="dimmed">
                {[...new Set(ofPreset.map(({ source }) => source))].filter(Boolean).join("; ")}
              </Text>{" "}
              <Link href={`/compare?preset=${preset}`}>Run {preset} here</Link>
            </Text>
            <List size="sm" mb="sm" spacing={6}>
              {ofPreset.map((claim) => (
                <List.Item key={`${claim.text} ${claim.compared}`}>
                  {claim.text}{" "}
                  <Text span c="dimmed">
                    {[claim.figure, claim.compared].filter(Boolean).join(": ")}
                  </Text>
                  {claim.row && <Row row={claim.row} />}
                  {findingsOf(experiments, preset, claim).map(({ experiment, finding }, index) => (
                    <div key={index}>
                      <Verdict finding={finding} alone={claim.against === ""} />
                      <Link href={`/compare/${experiment}`}>experiment {experiment}</Link>
                    </div>
                  ))}
                </List.Item>
              ))}
            </List>
          </section>
        ))}
      </div>
    </>
  );
}

/** Show whether a claim holds in simulation and on switches, by which ratios, and why not. */
function Row({ row }: { row: EvidenceRowView }) {
  return (
    <>
      {places(row).map(([where, outcome]) => {
        const { verdict, detail } = foundWords(outcome);
        return (
          <Text key={where}>
            {where}: <strong>{verdict}</strong> {detail}
          </Text>
        );
      })}
      {row.why && (
        <Text>
          Why:{" "}
          {pieces(row.why).map(({ text, code }, index) =>
            code ? <Code key={index}>{text}</Code> : <span key={index}>{text}</span>,
          )}
        </Text>
      )}
    </>
  );
}
