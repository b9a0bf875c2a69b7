import { useState } from "react";
import { useFabric, useFaults } from "../api/queries";
import type { FabricView, FaultView } from "../api/schema";
import { hostName } from "../fabric/layout";
import { QueryResult } from "../parts/QueryResult";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { clockTime } from "../parts/units";
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
      <QueryResult query={faults} what="list of faults">
        {(view) =>
          !view.possible ? (
            <Notice title="Only labs have faults made to order">
              This controller runs a fabric that is not its lab.
            </Notice>
          ) : (
            <>
              {view.faults.length === 0 ? (
                <p className="quiet">Nothing is broken on purpose.</p>
              ) : (
                <ul className="faults">
                  {view.faults.map((fault) => (
                    <li key={fault.id}>
                      {words(fault)}, since {clockTime(fault.began_at)}{" "}
                      <button disabled={!may || end.isPending} onClick={() => end.mutate(fault.id)}>
                        End it
                      </button>
                    </li>
                  ))}
                </ul>
              )}
              {may && <NewFaultForm busy={begin.isPending} begin={(fault) => begin.mutate(fault)} />}
              {error && <p role="alert">{error.message}</p>}
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
  if (kind === "switch-down") return fabric.switches.map((one) => one.name);
  if (kind === "agent-down") return fabric.hosts.filter((one) => one.agent).map(hostName);
  const access = fabric.hosts.flatMap((one) => (one.link ? [one.link] : []));
  return [...fabric.links.map((one) => one.name), ...access];
}

function NewFaultForm({ busy, begin }: { busy: boolean; begin: (fault: NewFault) => void }) {
  const fabric = useFabric().data;
  const [kind, setKind] = useState<FaultView["kind"]>("link-down");
  const [target, setTarget] = useState("");
  const [rate, setRate] = useState("1");
  const possible = fabric ? targets(kind, fabric) : [];
  const chosen = possible.includes(target) ? target : (possible[0] ?? "");
  return (
    <form
      className="actions"
      onSubmit={(event) => {
        event.preventDefault();
        begin({ kind, target: chosen, ...(kind === "slow-link" ? { rate_mbps: Number(rate) } : {}) });
      }}
    >
      <label>
        <span className="unseen">Kind of fault</span>
        <select value={kind} onChange={(event) => setKind(event.target.value as FaultView["kind"])}>
          {KINDS.map((one) => (
            <option key={one.kind} value={one.kind}>
              {one.words}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span className="unseen">Which</span>
        <select value={chosen} onChange={(event) => setTarget(event.target.value)}>
          {possible.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {kind === "slow-link" && (
        <label>
          to{" "}
          <input
            type="number"
            className="number"
            min={0.1}
            step="any"
            value={rate}
            onChange={(event) => setRate(event.target.value)}
          />{" "}
          Mbit/s
        </label>
      )}
      <button type="submit" disabled={busy || !chosen}>
        Do it
      </button>
    </form>
  );
}
