import { Text } from "@mantine/core";
import { useFabric } from "../api/queries";
import { Link } from "../app/Link";
import { useLive, useStore } from "../live/useLive";
import { DataTable } from "../parts/DataTable";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { bitRate, byteSize } from "../parts/units";
import { hostName } from "./layout";

const RECENT_S = 10;
const SHOWN = 40;

/** Show a host's place, and its flows of the last seconds. */
export function HostPanel({ name, close }: { name: string; close: () => void }) {
  const host = useFabric().data?.hosts.find((candidate) => hostName(candidate) === name);
  useLive("flows", (store) => store.flows);
  const flows = useStore()
    .flowHistory.recent(RECENT_S)
    .map((trace) => trace.flow)
    .filter((flow) => flow.source === name || flow.destination === name);
  return (
    <Panel title={`Host ${name}`} close={close}>
      {host ? (
        <Text>
          {host.underlay_ip} at {host.place ? `${host.place.switch}, port ${host.place.port}` : "no port yet"}
          {host.overlay.length > 0 && `; overlay ${host.overlay.join(", ")}`}
          {!host.agent && "; no agent: its traffic goes by plain ECMP"}
        </Text>
      ) : (
        <Text>There is no host of this name now.</Text>
      )}
      {flows.length === 0 ? (
        <Quiet>No flow in the last {RECENT_S} s.</Quiet>
      ) : (
        <DataTable
          label={`Flows of ${name}`}
          maxHeight={440}
          head={["flow", "with", "class", "sent", "rate", "paths"]}
          rows={flows.slice(0, SHOWN).map((flow) => ({
            key: flow.id,
            cells: [
              <Link href={`/watch/paths?flow=${flow.id}`}>{flow.id}</Link>,
              flow.source === name ? `→ ${flow.destination}` : `← ${flow.source}`,
              flow.traffic_class,
              byteSize(flow.bytes),
              bitRate(flow.bits_per_s),
              Object.keys(flow.paths).length || "–",
            ],
          }))}
        />
      )}
      {flows.length > SHOWN && <Quiet>and {flows.length - SHOWN} more</Quiet>}
    </Panel>
  );
}
