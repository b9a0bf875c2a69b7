import { useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import type { AgentsView } from "../api/schema";
import { DataTable } from "../parts/DataTable";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { duration } from "../parts/units";

/** Show host agents: whether each is connected, has the policy in force, and its round-trip time. */
export function AgentsPanel() {
  const agents = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => get<AgentsView>("/agents", signal),
    refetchInterval: 10_000,
  });
  return (
    <Panel title="Host agents">
      <QueryResult query={agents} subject="agents">
        {(view) =>
          view.agents.length === 0 ? (
            <Quiet>No host has an agent: traffic goes by plain ECMP.</Quiet>
          ) : (
            <DataTable
              label="Host agents"
              maxHeight={320}
              head={["host", "state", "policy", "round trip"]}
              rows={view.agents.map((agent) => ({
                key: agent.host,
                cells: [
                  agent.host,
                  agent.connected ? "● connected" : "✕ lost",
                  agent.policy_error ? `✕ ${agent.policy_error}` : `version ${agent.policy_version}`,
                  agent.round_trip_ms === null ? "–" : duration(agent.round_trip_ms / 1000),
                ],
              }))}
            />
          )
        }
      </QueryResult>
    </Panel>
  );
}
