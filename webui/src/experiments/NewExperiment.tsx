import { useHas } from "../api/queries";
import { useRole } from "../app/role";
import { Command } from "../parts/Command";
import { QueryResult } from "../parts/QueryResult";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { ExperimentForm } from "./ExperimentForm";
import { usePresets } from "./queries";

/** Begin an experiment, or show why that is not possible. */
export function NewExperiment() {
  const runs = useHas("/specs");
  const role = useRole();
  return (
    <Panel title="A new experiment">
      {runs === undefined && <Quiet>Asking for what this controller runs…</Quiet>}
      {runs === false && (
        <Notice title="This controller has no queue of experiments">
          It serves one experiment that runs just now. <Command>./capstan lab</Command>,{" "}
          <Command>demo</Command>, <Command>run --keep</Command> and <Command>serve --experiments</Command>{" "}
          run what is begun on their page.
        </Notice>
      )}
      {runs && role !== "operate" && (
        <Notice title="Your token is for reading only">
          To begin experiments, use the one in the file api-token of the controller's data directory.
        </Notice>
      )}
      {runs && role === "operate" && <Presets />}
    </Panel>
  );
}

function Presets() {
  return (
    <QueryResult query={usePresets()} subject="list of presets">
      {({ presets }) => <ExperimentForm presets={presets} />}
    </QueryResult>
  );
}
