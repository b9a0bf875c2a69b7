import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { useFaults } from "../api/queries";
import { useSource } from "../api/source";
import { useRole } from "../app/role";
import { focusHeading } from "../parts/focus";
import { RateInput } from "./RateInput";
import { useFaultChanges } from "./useFaultChanges";

/** Take a link down, slow it, and undo both: in labs, and for who may change things. */
export function LinkControls({ name, up, rateMbps }: { name: string; up: boolean; rateMbps: number | null }) {
  const faults = useFaults().data;
  const role = useRole();
  const own = useSource() === "";
  const { begin, end, error } = useFaultChanges();
  const [rate, setRate] = useState<number | string>(rateMbps === null ? 1 : rateMbps / 5);
  if (!own || !faults?.possible || role !== "operate") return null;
  const mine = faults.faults.filter((fault) => fault.target === name);
  const busy = begin.isPending || end.isPending;
  return (
    <Group gap="xs" mt="sm">
      {mine.map((fault) => (
        <Button
          key={fault.id}
          disabled={busy}
          onClick={(event) => {
            focusHeading(event.currentTarget);
            end.mutate(fault.id);
          }}
        >
          {fault.kind === "link-down" ? "Bring the link up again" : "Give the link its own rate back"}
        </Button>
      ))}
      {up && (
        <Button
          disabled={busy}
          onClick={(event) => {
            focusHeading(event.currentTarget);
            begin.mutate({ kind: "link-down", target: name });
          }}
        >
          Take the link down
        </Button>
      )}
      {up && !mine.some((fault) => fault.kind === "slow-link") && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            focusHeading(event.currentTarget);
            begin.mutate({ kind: "slow-link", target: name, rate_mbps: Number(rate) });
          }}
        >
          <Group gap="xs">
            <RateInput value={rate} onChange={setRate} />
            <Button type="submit" disabled={busy || !(Number(rate) > 0)}>
              Slow the link to that
            </Button>
          </Group>
        </form>
      )}
      {error && (
        <Text role="alert" c="error">
          {error.message}
        </Text>
      )}
    </Group>
  );
}
