import { Button, Group, List, SegmentedControl, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useCallback, useMemo, useState } from "react";
import { useKeys } from "../app/keyboard";
import { Link } from "../app/Link";
import { useSearch } from "../app/location";
import { Command } from "../parts/Command";
import { focusFirst } from "../parts/focus";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { RunLive } from "./RunLive";
import { fetchRecordings, NAMES, type Recordings, SCHEMES, type SchemeName } from "./recordings";
import { Stage } from "./Stage";
import { type Counted, STEPS, stepOf } from "./steps";
import styles from "./tour.module.css";

const LiveStage = lazy(async () => ({ default: (await import("./LiveStage")).LiveStage }));

/** Show six steps on what the schemes do, each on a recorded window of a simulated run: no fabric is needed. */
export function TourPage() {
  const [search, change] = useSearch();
  const number = stepOf(search.get("step"));
  const live = Number(search.get("live")) || null;
  const watch = useCallback(
    (experiment: number | null) => change({ live: experiment === null ? null : String(experiment) }),
    [change],
  );
  const recordings = useQuery({
    queryKey: ["tour"],
    queryFn: ({ signal }) => fetchRecordings(signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const keys = useMemo(() => {
    const go = (to: number): void => change({ step: String(Math.min(STEPS.length, Math.max(1, to))) });
    return { ArrowRight: () => go(number + 1), ArrowLeft: () => go(number - 1) };
  }, [number, change]);
  useKeys(keys);
  return (
    <>
      <nav aria-label="Steps" className={styles["steps"]}>
        {STEPS.map(({ title }, place) => (
          <Link
            key={title}
            href={`/tour?step=${place + 1}${live === null ? "" : `&live=${live}`}`}
            aria-current={place + 1 === number ? "step" : undefined}
          >
            {place + 1} {title}
          </Link>
        ))}
      </nav>
      <QueryResult query={recordings} subject="recordings">
        {(all) => <TourStep number={number} recordings={all} keys={keys} live={live} watch={watch} />}
      </QueryResult>
    </>
  );
}

function TourStep({
  number,
  recordings,
  keys,
  live,
  watch,
}: {
  number: number;
  recordings: Recordings;
  keys: { ArrowRight: () => void; ArrowLeft: () => void };
  /** The experiment that is watched in place of the recording. */
  live: number | null;
  watch: (experiment: number | null) => void;
}) {
  const step = STEPS[number - 1] ?? STEPS[0];
  const [chosen, setChosen] = useState<{ step: number; scheme: SchemeName } | null>(null);
  const counted = useMemo(() => step?.counted(recordings) ?? null, [step, recordings]);
  if (!step) return null;
  const plays = chosen?.step === number ? chosen.scheme : step.plays;
  const isLast = number === STEPS.length;
  return (
    <div className={styles["step"]}>
      <Panel title={`${number} of ${STEPS.length}: ${step.title}`}>
        <div aria-live="polite">
          {step.words.map((words) => (
            <Text key={words} mb={8}>
              {words}
            </Text>
          ))}
          {counted && <CountedTable counted={counted} />}
          {isLast && <YourTurn />}
        </div>
        <Group mt="sm" gap="xs">
          <Button onClick={keys.ArrowLeft} disabled={number === 1} title="Key ←">
            ← Back
          </Button>
          <Button onClick={keys.ArrowRight} disabled={isLast} title="Key →" variant="filled">
            Next →
          </Button>
        </Group>
        <Quiet>
          Keys: <kbd>←</kbd> and <kbd>→</kbd> go through the steps, <kbd>k</kbd> pauses.
        </Quiet>
        {live === null && <RunLive key={plays} scheme={plays} watch={watch} />}
      </Panel>
      {live !== null ? (
        <Panel title="Live on switches">
          <Suspense fallback={<Quiet>Loading…</Quiet>}>
            <LiveStage
              experiment={live}
              leave={() => {
                focusFirst("main h2");
                watch(null);
              }}
            />
          </Suspense>
        </Panel>
      ) : (
        <Panel title={`The same flows under ${NAMES[plays]}`}>
          {isLast && (
            <SegmentedControl
              aria-label="Recording"
              mb="xs"
              value={plays}
              onChange={(value) => setChosen({ step: number, scheme: value as SchemeName })}
              data={SCHEMES.map((scheme) => ({ value: scheme, label: NAMES[scheme] }))}
            />
          )}
          <Stage key={`${number} ${plays}`} trace={recordings[plays]} step={step} />
        </Panel>
      )}
    </div>
  );
}

function CountedTable({ counted }: { counted: Counted }) {
  return (
    <>
      <Title order={3} mt="sm">
        Counted in the recorded window
      </Title>
      <Table horizontalSpacing={5} className={styles["counted"] ?? ""}>
        <Table.Thead>
          <Table.Tr>
            <Table.Td />
            {counted.columns.map((column) => (
              <Table.Th key={column} scope="col">
                {column}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {counted.rows.map(({ name, cells }) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name}</Table.Th>
              {cells.map((cell, place) => (
                <Table.Td key={counted.columns[place]}>{cell}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}

function YourTurn() {
  return (
    <>
      <Text mb={8}>Play the three recordings, and compare. Then:</Text>
      <List size="sm" spacing={6}>
        <List.Item>
          read how each scheme works, and its paper's claims beside our figures, in{" "}
          <Link href="/understand">Understand</Link>;
        </List.Item>
        <List.Item>
          see it on switches: <Command>./capstan demo</Command>, or{" "}
          <Command>./capstan lab small --scheme caps</Command> and <Link href="/operate">Operate</Link> to
          switch the scheme and break links;
        </List.Item>
        <List.Item>
          record a window of your own,{" "}
          <Command>./capstan simulate small --scheme caps --trace caps.trace</Command>, and play it in{" "}
          <Link href="/watch/replay">Replay</Link>;
        </List.Item>
        <List.Item>
          compare schemes on your own flows in <Link href="/compare">Compare</Link>;
        </List.Item>
        <List.Item>
          do the seven labs of <Command>docs/labs/</Command>: <Command>./capstan lab-check</Command> lists
          them.
        </List.Item>
      </List>
    </>
  );
}
