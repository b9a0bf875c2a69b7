import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { get } from "../api/client";
import { useFabric } from "../api/queries";
import type { QueuesView } from "../api/schema";
import { useSource } from "../api/source";
import { Link } from "../app/Link";
import { useLive } from "../live/useLive";
import { DataTable } from "../parts/DataTable";
import { Gauge } from "../parts/Gauge";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { bitRate, count, digits } from "../parts/units";
import styles from "./queues.module.css";
import { dropped, portQueues, waiting, waitingOnly } from "./rows";

const FULL_PACKETS = 256;

/** Show all ports with their queues, and beside them the queues that were longest in the last minute. */
export function QueuesPage() {
  return (
    <div className={styles["page"]}>
      <Queues />
      <Suspense fallback={<Quiet>Loading…</Quiet>}>
        <FullestPorts />
      </Suspense>
    </div>
  );
}

// Its chart comes after the table is drawn.
const FullestPorts = lazy(async () => ({ default: (await import("./FullestPorts")).FullestPorts }));

/** Show the packets in the queues of ports now, longest first: of all, or of the *first* ports. */
export function Queues({ first }: { first?: number }) {
  const source = useSource();
  const sample = useLive("links", (store) => store.links);
  const fabric = useFabric().data;
  const query = useQuery({
    queryKey: ["queues", source],
    queryFn: ({ signal }) => get<QueuesView>(`${source}/queues`, signal),
    refetchInterval: 1_000,
  });
  const view = query.data;
  const sampled = sample ? portQueues(sample, fabric) : [];
  const all = sampled.length > 0 || !view ? sampled : waitingOnly(view);
  const rows = all.slice(0, first);
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
    <Panel title={first === undefined ? "Queues of ports" : "Fullest queues"}>
      {view && first === undefined && (
        <Text mb={6}>
          The scheme wants {view.wanted.number === 1 ? "one queue" : `${view.wanted.number} queues`} a port
          {view.wanted.number > 1 && "; queue 0 is served first"}.{" "}
          {view.switches.every((switchView) => switchView.in_force)
            ? "✓ in force on all switches"
            : "◐ not in force everywhere yet"}
        </Text>
      )}
      {problems.length > 0 && (
        <Notice title="Ports without the queues that are wanted" kind="error">
          {problems.join("; ")}
        </Notice>
      )}
      {rows.length === 0 ? (
        <QueryResult query={query} subject="queues">
          {() => (
            <Quiet>
              No port reports its queues. Switches are asked while a page shows them; ports of your own fabric
              may not report queues (docs/own-fabric.md).
            </Quiet>
          )}
        </QueryResult>
      ) : (
        <DataTable
          label="Queues of ports"
          live
          {...(first === undefined ? { maxHeight: "75vh" } : {})}
          head={["port", "dropped", ...Array.from({ length: number }, (_, queue) => `queue ${queue}`)]}
          rows={rows.map((row) => ({
            key: row.key,
            cells: [
              row.link === null ? (
                row.direction
              ) : (
                <Link
                  href={`/watch?link=${encodeURIComponent(row.link)}`}
                  title={`${waiting(row)} packets wait`}
                >
                  {row.direction}
                </Link>
              ),
              row.queues.some((queue) => queue.dropped_per_s !== null)
                ? `${digits(dropped(row))} packets/s`
                : "–",
              ...row.queues.map((queue) => (
                <span
                  key={queue.queue}
                  title={queue.bits_per_s === null ? undefined : bitRate(queue.bits_per_s)}
                >
                  <Gauge
                    share={queue.waiting_packets / (full > 1 ? full : FULL_PACKETS)}
                    bad={(queue.dropped_per_s ?? 0) > 0}
                  />{" "}
                  <span className={styles["packets"]}>
                    {count(queue.waiting_packets, "packet")}
                    {(queue.dropped_per_s ?? 0) > 0 ? " ▼" : ""}
                  </span>
                </span>
              )),
            ],
          }))}
        />
      )}
    </Panel>
  );
}
