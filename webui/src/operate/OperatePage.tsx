import { useFabric } from "../api/queries";
import { Link } from "../app/Link";
import { useRole } from "../app/role";
import { FaultControls } from "../control/FaultControls";
import { SchemeControls } from "../control/SchemeControls";
import { RecentEvents } from "../fabric/RecentEvents";
import { Command } from "../parts/Command";
import { Column, Grid } from "../parts/Grid";
import { Notice } from "../parts/Notice";
import { AgentsPanel } from "./AgentsPanel";
import { HealthPanel } from "./HealthPanel";
import { SwitchesPanel } from "./SwitchesPanel";

/** Change what the fabric does, and see how its parts are. */
export function OperatePage() {
  const may = useRole() === "operate";
  if (useFabric().data?.switches.length === 0) return <NoFabric />;
  return (
    <Column>
      {!may && (
        <Notice title="Your token is for reading only">
          Changes need the one in the file api-token of the controller's data directory.
        </Notice>
      )}
      <Grid least={410} most={2}>
        <Column>
          <SchemeControls may={may} />
          <FaultControls may={may} />
        </Column>
        <Column>
          <HealthPanel />
          <RecentEvents />
        </Column>
        <SwitchesPanel />
        <AgentsPanel />
      </Grid>
    </Column>
  );
}

/** Say that there is nothing to change without switches. */
function NoFabric() {
  return (
    <Column>
      <Notice title="There is no fabric to operate">
        No switch has connected to this controller. In a lab (<Command>./capstan lab small</Command>, as
        root), and on switches of your own (docs/own-fabric.md), schemes are switched here, and links broken
        and mended. Fabrics of experiments are shown in <Link href="/watch">Watch</Link> while they run.
      </Notice>
      <Grid least={410} most={2}>
        <HealthPanel />
        <RecentEvents without={["scheme-changed"]} />
      </Grid>
    </Column>
  );
}
