import { useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import type { QueuesView } from "../api/schema";
import { Link } from "../app/Link";
import { useLive } from "../live/useLive";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { bitRate, digits } from "../parts/units";
import { dropped, portQueues, waiting, waitingOnly } from "./rows";

const FULL_PACKETS = 256;

/** What waits in the queues of every port now, those with most first. */
export function QueuesPage() {
  const sample = useLive("links", (store) => store.links);
  const view = useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => get<QueuesView>("/queues", signal),
    refetchInterval: 1_000,
  }).data;
  const sampled = sample ? portQueues(sample) : [];
  const rows = sampled.length > 0 || !view ? sampled : waitingOnly(view);
  const number = Math.max(1, ...rows.map((row) => row.queues.length));
  const problems =
    view?.switches.flatMap((switchView) =>
      switchView.problems.map((text) => `${switchView.switch}: ${text}`),
    ) ?? [];
  const full = Math.max(
    1,
    ...(view?.switches.flatMap((switchView) => switchView.ports.map((port) => port.buffer_packets ?? 0)) ??
      []),
  );
  return (
    <Panel title="Queues of ports">
      {view && (
        <p>
          The scheme wants {view.wanted.number === 1 ? "one queue" : `${view.wanted.number} queues`} a port
          {view.wanted.number > 1 && "; queue 0 is served first"}.{" "}
          {view.switches.every((switchView) => switchView.in_force)
            ? "✓ in force on all switches"
            : "◐ not in force everywhere yet"}
        </p>
      )}
      {problems.length > 0 && (
        <Notice title="Ports without the queues that are wanted" kind="error">
          {problems.join("; ")}
        </Notice>
      )}
      {rows.length === 0 ? (
        <Notice title="No port reports its queues">
          Switches are asked while a page shows them; ports of your own fabric may not report queues
          (docs/own-fabric.md).
        </Notice>
      ) : (
        <div className="scroll tall" tabIndex={0} role="region" aria-label="All ports">
          <table className="numbers queues">
            <thead>
              <tr>
                <th scope="col">port</th>
                <th scope="col">waiting</th>
                <th scope="col">dropped</th>
                {Array.from({ length: number }, (_, queue) => (
                  <th scope="col" key={queue}>
                    queue {queue}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.direction}>
                  <th scope="row">
                    {row.link === null ? (
                      row.direction
                    ) : (
                      <Link href={`/fabric?link=${row.link}`}>{row.direction}</Link>
                    )}
                  </th>
                  <td>{waiting(row)} pkt</td>
                  <td>
                    {row.queues.some((queue) => queue.dropped_per_s !== null)
                      ? `${digits(dropped(row))} /s`
                      : "–"}
                  </td>
                  {row.queues.map((queue) => (
                    <td key={queue.queue} title={queue.bits_per_s === null ? "" : bitRate(queue.bits_per_s)}>
                      <span className="gauge">
                        <span
                          className={(queue.dropped_per_s ?? 0) > 0 ? "dropping" : ""}
                          style={{
                            width: `${Math.min(100, (100 * queue.waiting_packets) / (full > 1 ? full : FULL_PACKETS))}%`,
                          }}
                        />
                      </span>{" "}
                      {queue.waiting_packets} pkt{(queue.dropped_per_s ?? 0) > 0 ? " ▼" : ""}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}
