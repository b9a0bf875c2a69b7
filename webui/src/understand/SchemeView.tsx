import { Anchor, Button, Code, CopyButton, Group, List, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { BASE, getText } from "../api/client";
import { useFabric, useScheme } from "../api/queries";
import type { Scheme } from "../api/schema";
import { Link } from "../app/Link";
import { Command } from "../parts/Command";
import { Column, Grid } from "../parts/Grid";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { PathDiagram } from "../paths/PathDiagram";
import { WatchSource } from "../watch/WatchSource";
import { mechanisms, onlySimulated, type Part, parts, PATHS } from "./composition";
import { Evidence } from "./Evidence";
import styles from "./understand.module.css";

const TpfsPanels = lazy(async () => ({ default: (await import("../tpfs/TpfsPanels")).TpfsPanels }));
const CaptonPanels = lazy(async () => ({ default: (await import("../capton/CaptonPanels")).CaptonPanels }));

/**
 * Show a scheme: what it does, drawn and in words, its parts, its file, what its paper claims and what was measured.
 */
export function SchemeView({ scheme }: { scheme: Scheme }) {
  const noFabric = useFabric().data?.switches.length === 0;
  const inForce = useScheme().data?.base === scheme.name && !noFabric;
  return (
    <Column>
      <Panel title={`${scheme.name}: ${scheme.title}`}>
        <Text maw="80em">{scheme.summary}</Text>
        <List size="sm" mt={6}>
          {scheme.papers.map((paper) => (
            <List.Item key={`${paper.venue} ${paper.year}`}>
              <Text span fs="italic">
                {paper.title}
              </Text>{" "}
              <Text span c="dimmed">
                {paper.authors && `${paper.authors}; `}
                {paper.venue}, {paper.year}
                {paper.section && `, ${paper.section}`}
              </Text>
              {paper.doi && (
                <>
                  {" "}
                  <Anchor href={`https://doi.org/${paper.doi}`}>doi:{paper.doi}</Anchor>
                </>
              )}
            </List.Item>
          ))}
        </List>
        <Text mt={6}>
          {inForce ? (
            <>
              ● in force on this fabric: <Link href="/watch/paths">watch its paths</Link>
            </>
          ) : onlySimulated(scheme) ? (
            <>
              For simulations alone: <Command>{`./capstan simulate small --scheme ${scheme.name}`}</Command>
            </>
          ) : noFabric ? (
            <>
              No switch has connected to this controller, so there is no fabric to switch to it:{" "}
              <Command>{`./capstan lab small --scheme ${scheme.name}`}</Command> makes a lab that runs it.
            </>
          ) : (
            <Link href="/operate">Switch to it in Operate</Link>
          )}
        </Text>
      </Panel>
      <Grid least={420}>
        <Column>
          <Panel title="Paths of packets">
            <Grid least={280}>
              {parts(scheme).map((part) => (
                <ClassDiagram key={`${part.trafficClass} ${part.mode}`} part={part} />
              ))}
            </Grid>
          </Panel>
          <Panel title="Parts">
            <Table>
              <Table.Tbody>
                {mechanisms(scheme).map(({ name, words }) => (
                  <Table.Tr key={name}>
                    <Table.Th scope="row" fw={600} style={{ verticalAlign: "top" }}>
                      {name}
                    </Table.Th>
                    <Table.Td>{words}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
            <Quiet>A packet time is that of 1500 B on the slowest link of the fabric.</Quiet>
          </Panel>
        </Column>
        <Source name={scheme.name} />
      </Grid>
      <Evidence scheme={scheme.name} />
      <Suspense fallback={<Quiet>Loading…</Quiet>}>
        {(scheme.priority?.prediction || scheme.admission) && (
          <WatchSource>
            {scheme.priority?.prediction && <TpfsPanels />}
            {scheme.admission && <CaptonPanels />}
          </WatchSource>
        )}
      </Suspense>
    </Column>
  );
}

function ClassDiagram({ part }: { part: Part }) {
  return (
    <section>
      <Title order={3}>
        {part.trafficClass === "short" ? "Short" : "Long"} flows{part.mode && `, leaf ${part.mode}`}
      </Title>
      <PathDiagram
        source="h1"
        destination="h2"
        paths={PATHS.map((stamp) => ({ stamp: Number(stamp), switches: ["l1", `s${stamp}`, "l2"] }))}
        now={part.counts}
      />
      <Quiet>{part.words}</Quiet>
    </section>
  );
}

/** Show the scheme's file, to read and as the start of a scheme of the user's own. */
function Source({ name }: { name: string }) {
  const path = `/schemes/${name}.yaml`;
  const text = useQuery({
    queryKey: ["schemes", name, "yaml"],
    queryFn: ({ signal }) => getText(path, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Panel title="Its file" filled>
      <QueryResult query={text} subject="file">
        {(yaml) => (
          <>
            <Code block className={styles["yaml"] ?? ""} tabIndex={0} aria-label={`${name}.yaml`}>
              {yaml}
            </Code>
            <Group mt={6}>
              <CopyButton value={yaml}>
                {({ copied, copy }) => <Button onClick={copy}>{copied ? "✓ copied" : "Copy"}</Button>}
              </CopyButton>
              <Anchor size="sm" href={BASE + path} download={`${name}.yaml`}>
                Download
              </Anchor>
              <Quiet>
                Changed, it runs by <Command>{`./capstan lab small --scheme path/to/${name}.yaml`}</Command>
              </Quiet>
            </Group>
          </>
        )}
      </QueryResult>
    </Panel>
  );
}
