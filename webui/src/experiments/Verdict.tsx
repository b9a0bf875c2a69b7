import { Text } from "@mantine/core";
import { count } from "../parts/units";
import { roughly } from "./roughly";
import { useEngine } from "./queries";
import type { CheckView } from "../api/schema";

/** Show what a submission would be: its runs, its time, and what is before it in the queue. */
export function Verdict({ check }: { check: CheckView }) {
  const engine = useEngine().data;
  const before = engine ? engine.running.length + engine.queued.length : 0;
  return (
    <>
      <Text c="var(--good)">
        ✓ {count(check.runs, "run")}
        {check.points > 1 && ` at ${check.points} points`}
        {check.estimated_s !== null && `, about ${roughly(check.estimated_s)}`}
        {before > 0 && `, after ${count(before, "other experiment")}`}
      </Text>
      {engine?.paused && <Text c="var(--warn)">⚠ Nothing is run for now: {engine.paused}</Text>}
    </>
  );
}
