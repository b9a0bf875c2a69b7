import { Link } from "../app/Link";
import { useRole } from "../app/role";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { FaultControls } from "./FaultControls";
import { SchemeControls } from "./SchemeControls";

/** Change what the fabric does: its scheme, its faults, its traffic. */
export function ControlPage() {
  const role = useRole();
  return (
    <>
      {role === "read" && (
        <Notice title="Your token is for looking only">
          The one in the file api-token of the controller's data directory may change things.
        </Notice>
      )}
      <div className="experiments">
        <SchemeControls may={role === "operate"} />
        <FaultControls may={role === "operate"} />
        <Panel title="Traffic">
          <p>
            A workload is part of an experiment: <Link href="/experiments">begin one</Link> from a preset, and
            watch it in <Link href="/paths">Live paths</Link>. By hand:{" "}
            <code>./capstan exec h1 -- iperf3 -c h5</code>.
          </p>
        </Panel>
      </div>
    </>
  );
}
