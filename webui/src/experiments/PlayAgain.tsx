import { Group, Text } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Link } from "../app/Link";
import { Quiet } from "../parts/Quiet";
import { LENGTH_MS, MOST_MS, replayAddress } from "../replay/address";
import { MsField } from "../replay/MsField";
import { notRecorded, recordedRuns } from "./recordedRuns";
import type { Experiment, ResultDocument } from "./types";

/**
 * Link to the packets of an experiment's runs, a scheme each: of simulated runs in the window that is chosen, of runs
 * on switches in the window that was recorded.
 */
export function PlayAgain({ experiment }: { experiment: Experiment }) {
  return experiment.simulated ? (
    <Simulated experiment={experiment} />
  ) : (
    <OnSwitches experiment={experiment} />
  );
}

function Simulated({ experiment }: { experiment: Experiment }) {
  const [from, setFrom] = useState<number | string>(0);
  const [length, setLength] = useState<number | string>(LENGTH_MS);
  const withRuns = new Set((experiment.runs ?? []).map((run) => run.label));
  const labels = Object.keys(((experiment.summary ?? {}) as ResultDocument).schemes ?? {}).filter((label) =>
    withRuns.has(label),
  );
  if (experiment.state !== "finished" || labels.length === 0) return null;
  const window = { from: Number(from) || 0, length: Number(length) || LENGTH_MS };
  return (
    <Runs
      words="Play again, packet by packet, these milliseconds of the first run:"
      links={labels.map((label) => [label, replayAddress(experiment.id, label, window), ""])}
    >
      <MsField label="from" value={from} change={setFrom} />
      <MsField label="for" value={length} change={setLength} least={1} most={MOST_MS} />
    </Runs>
  );
}

function OnSwitches({ experiment }: { experiment: Experiment }) {
  const runs = experiment.runs ?? [];
  const recorded = recordedRuns(runs);
  if (recorded.length > 0)
    return (
      <Runs
        words="Play again, packet by packet, what was recorded of the first run:"
        links={recorded.map(({ label, words }) => [
          label,
          replayAddress(experiment.id, label),
          ` (${words})`,
        ])}
      />
    );
  if (experiment.state !== "finished" || runs.length === 0) return null;
  const why = notRecorded(experiment.summary as ResultDocument | null);
  return (
    <Quiet>
      Its packets cannot be played again:{" "}
      {experiment.record
        ? why.join("; ") || "nothing was recorded."
        : "they were not recorded. Begin it again with “Record packets”."}
    </Quiet>
  );
}

/** List *links*: label, address, and the note behind it. */
function Runs({
  words,
  links,
  children,
}: {
  words: string;
  links: readonly (readonly [string, string, string])[];
  children?: ReactNode;
}) {
  return (
    <Group mt="xs" gap="xs" align="end" role="group" aria-label="Play again">
      {children}
      <Text mb={children ? 5 : 0}>
        {words}{" "}
        {links.map(([label, address, behind], place) => (
          <span key={label}>
            {place > 0 && ", "}
            <Link href={address}>{label}</Link>
            {behind}
          </span>
        ))}
      </Text>
    </Group>
  );
}
