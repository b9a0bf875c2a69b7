import { useFabric } from "../api/queries";
import { DataTable } from "../parts/DataTable";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";

/** Show switches with their place and connection. */
export function SwitchesPanel() {
  const fabric = useFabric();
  return (
    <Panel title="Switches">
      <QueryResult query={fabric} subject="fabric">
        {({ switches, links }) =>
          switches.length === 0 ? (
            <Quiet>No switch has connected.</Quiet>
          ) : (
            <DataTable
              label="Switches"
              maxHeight={320}
              head={["switch", "role", "controller", "links up"]}
              rows={switches.map((view) => {
                const mine = links.filter((link) => [link.a.switch, link.b.switch].includes(view.name));
                return {
                  key: view.name,
                  cells: [
                    view.name,
                    view.role ?? "–",
                    view.connected ? "● connected" : "✕ lost",
                    `${mine.filter((link) => link.up).length} of ${mine.length}`,
                  ],
                };
              })}
            />
          )
        }
      </QueryResult>
    </Panel>
  );
}
