import { List, Text } from "@mantine/core";
import { useHas, useHealth } from "../api/queries";
import { useEngine } from "../experiments/queries";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { count, duration } from "../parts/units";

/** Show whether the fabric is ready, and the queue of experiments where there is one. */
export function HealthPanel() {
  const health = useHealth();
  return (
    <Panel title="Health">
      <QueryResult query={health} subject="health">
        {(view) => (
          <>
            {view.switches === 0 ? (
              <Text fw={600}>○ no fabric</Text>
            ) : (
              <Text c={view.ready ? "var(--good)" : "var(--warn)"} fw={600}>
                {view.ready ? "● ready" : "⚠ not ready"}
              </Text>
            )}
            <List size="sm">
              {view.reasons.map((reason) => (
                <List.Item key={reason}>{reason}</List.Item>
              ))}
            </List>
            <Text>
              {count(view.switches, "switch", "switches")} connected, {count(view.links, "link")} up,{" "}
              {count(view.hosts, "host")}, {count(view.agents, "agent")}; controller {view.version}, running
              for {duration(view.uptime_s)}
            </Text>
            <Queue />
          </>
        )}
      </QueryResult>
    </Panel>
  );
}

function Queue() {
  return useHas("/specs") ? <EngineWords /> : null;
}

function EngineWords() {
  const engine = useEngine().data;
  if (!engine) return null;
  return (
    <Text>
      Experiments: {engine.running.length} running, {engine.queued.length} waiting;{" "}
      {count(engine.workers, "worker")} for labs, {count(engine.simulation_workers, "worker")} for simulations
      {engine.paused && `; ⚠ nothing is run for now: ${engine.paused}`}
    </Text>
  );
}
