import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { get } from "../api/client";
import { useHas } from "../api/queries";
import { QueryResult } from "../parts/QueryResult";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { bitRate, byteSize, count, duration, percent } from "../parts/units";
import { Gantt } from "./Gantt";
import { type Row, withView } from "./grantRows";
import type { CaptonView } from "../api/schema";

const EVERY_S = 1;

/** The central scheduler: who may send, at what rate, and what that leaves of the links. */
export function CaptonPage() {
  const has = useHas("/capton");
  const view = useQuery({
    queryKey: ["capton"],
    queryFn: ({ signal }) => get<CaptonView>("/capton", signal),
    enabled: has === true,
    refetchInterval: EVERY_S * 1000,
  });
  const [rows, setRows] = useState<Row[]>([]);
  const { data, dataUpdatedAt } = view;
  useEffect(() => {
    if (data) setRows((known) => withView(known, data, dataUpdatedAt / 1000, EVERY_S));
  }, [data, dataUpdatedAt]);
  if (has === false) return <Idle />;
  return (
    <QueryResult query={view} what="scheduler">
      {(capton) =>
        !capton.enabled ? (
          <Idle />
        ) : (
          <>
            <Panel title="Grants">
              <p>
                {count(capton.totals.granted_flows, "flow")} may send, {bitRate(capton.totals.granted_bps)}{" "}
                together; {capton.totals.waiting_flows} wait; {byteSize(capton.totals.remaining_bytes)} remain
                {capton.latency.median_us !== null &&
                  capton.latency.count > 0 &&
                  `; from request to decision ${duration(capton.latency.median_us / 1e6)} in the median`}
              </p>
              <Gantt rows={rows} now={dataUpdatedAt / 1000} />
            </Panel>
            <Panel title="Shares of links">
              <Shares capton={capton} />
            </Panel>
          </>
        )
      }
    </QueryResult>
  );
}

function Idle() {
  return (
    <Notice title="No scheduler is at work">
      The scheme in force lets every host send when it likes. Under capton large flows ask first: switch to it
      in Control.
    </Notice>
  );
}

function Shares({ capton }: { capton: CaptonView }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Links with their grants">
      <table className="numbers">
        <thead>
          <tr>
            <th scope="col">link</th>
            <th scope="col">granted</th>
            <th scope="col">of</th>
            <th scope="col">share</th>
          </tr>
        </thead>
        <tbody>
          {[...capton.links]
            .sort((left, right) => right.utilisation - left.utilisation)
            .map((link) => (
              <tr key={link.name}>
                <th scope="row">{link.name}</th>
                <td>{bitRate(link.granted_bps)}</td>
                <td>{bitRate(link.capacity_bps)}</td>
                <td>
                  <span className="gauge">
                    <span style={{ width: `${Math.min(100, 100 * link.utilisation)}%` }} />
                  </span>{" "}
                  {percent(link.utilisation)}
                </td>
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  );
}
