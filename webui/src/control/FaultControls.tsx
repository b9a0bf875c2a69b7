import { Button, Group, List, NativeSelect, Text } from "@mantine/core";
import { useState } from "react";
import { useFabric, useFaults } from "../api/queries";
import type { FabricView, FaultView } from "../api/schema";
import { hostName } from "../fabric/layout";
import { QueryResult } from "../parts/QueryResult";
import { focusHeading } from "../parts/focus";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { timeOfEvent } from "../parts/units";
import { RateInput } from "./RateInput";
import { type NewFault, useFaultChanges } from "./useFaultChanges";

const KINDS: readonly { kind: FaultView["kind"]; words: string }[] = [
  { kind: "link-down", words: "Take a link down" },
  { kind: "slow-link", words: "Slow a link" },
  { kind: "switch-down", words: "Take a switch down" },
  { kind: "agent-down", words: "End a host's agent" },
];

/** Break the fabric, and mend it: in labs only. */
export function FaultControls({ may }: { may: boolean }) {
  const faults = useFaults();
  const { begin, end, error } = useFaultChanges();
  return (
    <Panel title="Faults">
      <QueryResult query={faults} subject="list of faults">
        {(view) =>
          !view.possible ? (
            <Notice title="Faults can be injected in labs only">
              This controller's fabric is not a lab.
            </Notice>
          ) : (
            <>
              {view.faults.length === 0 && <Quiet>No fault is in force.</Quiet>}
              <List size="sm" listStyleType="none">
                {view.faults.map((fault) => (
                  <List.Item key={fault.id}>
                    {words(fault)}, since {timeOfEvent(fault.began_at, Date.now() / 1000)}{" "}
                    <Button
                      size="compact-xs"
                      disabled={!may || end.isPending}
                      onClick={(event) => {
                        focusHeading(event.currentTarget);
                        end.mutate(fault.id);
                      }}
                    >
                      End it
                    </Button>
                  </List.Item>
                ))}
              </List>
              {may && <NewFaultForm busy={begin.isPending} begin={(fault) => begin.mutate(fault)} />}
              {error && (
                <Text role="alert" c="error">
                  {error.message}
                </Text>
              )}
            </>
          )
        }
      </QueryResult>
    </Panel>
  );
}

function words(fault: FaultView): string {
  const limits = [
    fault.rate_mbps != null && `${fault.rate_mbps} Mbit/s`,
    fault.delay_ms != null && `${fault.delay_ms} ms of delay`,
  ].filter(Boolean);
  const kind = {
    "link-down": "down",
    "switch-down": "down",
    "slow-link": "slow",
    "agent-down": "without its agent",
  };
  return `${fault.target} is ${kind[fault.kind]}${limits.length > 0 ? `: ${limits.join(", ")}` : ""}`;
}

function targets(kind: FaultView["kind"], fabric: FabricView): string[] {
  if (kind === "switch-down") return fabric.switches.map((item) => item.name);
  if (kind === "agent-down") return fabric.hosts.filter((item) => item.agent).map(hostName);
  const access = fabric.hosts.flatMap((item) => (item.link ? [item.link] : []));
  return [...fabric.links.map((item) => item.name), ...access];
}

function NewFaultForm({ busy, begin }: { busy: boolean; begin: (fault: NewFault) => void }) {
  const fabric = useFabric().data;
  const [kind, setKind] = useState<FaultView["kind"]>("link-down");
  const [target, setTarget] = useState("");
  const [rate, setRate] = useState<number | string>(1);
  const possible = fabric ? targets(kind, fabric) : [];
  const chosen = possible.includes(target) ? target : (possible[0] ?? "");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        focusHeading(event.currentTarget);
        begin({ kind, target: chosen, ...(kind === "slow-link" ? { rate_mbps: Number(rate) } : {}) });
      }}
    >
      <Group gap="xs" mt="xs">
        <NativeSelect
          aria-label="Kind of fault"
          value={kind}
          onChange={(event) => setKind(event.target.value as FaultView["kind"])}
          data={KINDS.map(({ kind, words }) => ({ value: kind, label: words }))}
        />
        <NativeSelect
          aria-label="Which"
          value={chosen}
          onChange={(event) => setTarget(event.target.value)}
          data={possible}
        />
        {kind === "slow-link" && <RateInput value={rate} onChange={setRate} />}
        <Button type="submit" disabled={busy || !chosen}>
          Do it
        </Button>
      </Group>
    </form>
  );
}
