import { useFabric } from "../api/queries";
import { Link } from "../app/Link";
import { useLive, useStore } from "../live/useLive";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { bitRate, byteSize } from "../parts/units";
import { hostName } from "./layout";

const RECENT_S = 10;
const SHOWN = 40;

/** A host's place, and its flows of the last seconds. */
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
        <p>
          {host.underlay_ip} at {host.place ? `${host.place.switch}, port ${host.place.port}` : "no port yet"}
          {host.overlay.length > 0 && `; overlay ${host.overlay.join(", ")}`}
          {!host.agent && "; no agent: its traffic goes by plain ECMP"}
        </p>
      ) : (
        <p>There is no host of this name now.</p>
      )}
      {flows.length === 0 ? (
        <Notice title={`No flow in the last ${RECENT_S} s`} />
      ) : (
        <table className="numbers">
          <thead>
            <tr>
              <th scope="col">flow</th>
              <th scope="col">with</th>
              <th scope="col">class</th>
              <th scope="col">sent</th>
              <th scope="col">rate</th>
              <th scope="col">paths</th>
            </tr>
          </thead>
          <tbody>
            {flows.slice(0, SHOWN).map((flow) => (
              <tr key={flow.id}>
                <th scope="row">
                  <Link href={`/paths?flow=${flow.id}`}>{flow.id}</Link>
                </th>
                <td>{flow.source === name ? `→ ${flow.destination}` : `← ${flow.source}`}</td>
                <td>{flow.traffic_class}</td>
                <td>{byteSize(flow.bytes)}</td>
                <td>{bitRate(flow.bits_per_s)}</td>
                <td>{Object.keys(flow.paths).length || "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {flows.length > SHOWN && <p className="quiet">and {flows.length - SHOWN} more</p>}
    </Panel>
  );
}
