import { Group, NumberInput, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "../app/Link";
import { LENGTH_MS, MOST_MS, replayAddress } from "../replay/address";
import type { Experiment, ResultDocument } from "./types";

/** Links to the packets of a simulated experiment's runs, a scheme each, in the window that is chosen. */
export function PlayAgain({ experiment }: { experiment: Experiment }) {
  const [from, setFrom] = useState<number | string>(0);
  const [length, setLength] = useState<number | string>(LENGTH_MS);
  const kept = new Set((experiment.runs ?? []).map((run) => run.label));
  const labels = Object.keys(((experiment.summary ?? {}) as ResultDocument).schemes ?? {}).filter((label) =>
    kept.has(label),
  );
  if (!experiment.simulated || experiment.state !== "finished" || labels.length === 0) return null;
  const window = { from: Number(from) || 0, length: Number(length) || LENGTH_MS };
  return (
    <Group mt="xs" gap="xs" align="end" role="group" aria-label="Play again">
      <NumberInput
        size="xs"
        w={130}
        label="from"
        suffix=" ms"
        min={0}
        allowDecimal={false}
        value={from}
        onChange={setFrom}
      />
      <NumberInput
        size="xs"
        w={130}
        label="for"
        suffix=" ms"
        min={1}
        max={MOST_MS}
        allowDecimal={false}
        value={length}
        onChange={setLength}
      />
      <Text mb={5}>
        Play again, packet by packet, these milliseconds of the first run:{" "}
        {labels.map((label, place) => (
          <span key={label}>
            {place > 0 && ", "}
            <Link href={replayAddress(experiment.id, label, window)}>{label}</Link>
          </span>
        ))}
      </Text>
    </Group>
  );
}
