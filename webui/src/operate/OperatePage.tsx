import { useRole } from "../app/role";
import { FaultControls } from "../control/FaultControls";
import { SchemeControls } from "../control/SchemeControls";
import { RecentEvents } from "../fabric/RecentEvents";
import { Column, Grid } from "../parts/Grid";
import { Notice } from "../parts/Notice";
import { AgentsPanel } from "./AgentsPanel";
import { HealthPanel } from "./HealthPanel";
import { SwitchesPanel } from "./SwitchesPanel";

/** Change what the fabric does, and see how its parts are. */
export function OperatePage() {
  const may = useRole() === "operate";
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
