import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useMemo } from "react";
import { get } from "../api/client";
import { useScheme } from "../api/queries";
import type { EventsView } from "../api/schema";
import { merged } from "../flows/rows";
import { useAllFlows } from "../flows/useAllFlows";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { SchemeMark } from "../parts/SchemeMark";
import { bitRate, count, duration } from "../parts/units";
import { DistributionChart } from "./DistributionChart";
import {
  distribution,
  figures,
  groups,
  LEAST_FOR_P99,
  longGoodput,
  schemeIntervals,
  SIZE_CLASSES,
} from "./statistics";

/** Completion times of live traffic, by size class and scheme. */
export function FctPage() {
  const { known, live } = useAllFlows();
  const scheme = useScheme().data?.scheme.name ?? null;
  const events = useQuery({
    queryKey: ["events", "scheme", scheme],
    queryFn: ({ signal }) => get<EventsView>("/events?topics=scheme&limit=10000", signal),
  });
  const recent = useDeferredValue(live);
  const calm = useMemo(() => merged(known, recent), [known, recent]);
  const flowGroups = useMemo(
    () => groups(calm, schemeIntervals(events.data?.events ?? [], scheme)),
    [calm, events.data, scheme],
  );
  const long = longGoodput(calm);
  return (
    <>
      <p>
        {long.flows === 0
          ? "No long flow is on its way."
          : `${count(long.flows, "long flow")} on the way: ${bitRate(long.bitsPerS)} together.`}{" "}
        <span className="quiet">
          Times run from a flow's first packet to its last, as agents saw them; flows during which the scheme
          changed are left out. For conclusions run an experiment: the same flows under every scheme.
        </span>
      </p>
      {flowGroups.length === 0 && (
        <Notice title="No flow has ended yet">
          Completion times show here as flows end; try Control to start some.
        </Notice>
      )}
      <div className="fct-grid">
        {SIZE_CLASSES.map((sizeClass) => {
          const mine = flowGroups.filter((group) => group.sizeClass === sizeClass);
          if (mine.length === 0) return null;
          return (
            <Panel key={sizeClass.name} title={`Flows of ${sizeClass.name}`}>
              <DistributionChart
                title="Share of flows that are done"
                curves={mine.map((group) => ({ scheme: group.scheme, points: distribution(group.times) }))}
              />
              <table className="numbers">
                <thead>
                  <tr>
                    <th scope="col">scheme</th>
                    <th scope="col">flows</th>
                    <th scope="col">mean</th>
                    <th scope="col">median</th>
                    <th scope="col">p99</th>
                  </tr>
                </thead>
                <tbody>
                  {mine.map((group) => {
                    const { n, mean, p50, p99 } = figures(group.times);
                    return (
                      <tr key={group.scheme}>
                        <th scope="row">
                          <SchemeMark name={group.scheme} />
                        </th>
                        <td>{n}</td>
                        <td>{duration(mean)}</td>
                        <td>{duration(p50)}</td>
                        <td title={p99 === null ? `needs ${LEAST_FOR_P99} flows` : ""}>
                          {p99 === null ? "–" : duration(p99)}
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </Panel>
          );
        })}
      </div>
    </>
  );
}
