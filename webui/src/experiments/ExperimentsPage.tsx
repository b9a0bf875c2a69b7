import { usePath } from "../app/location";
import { Notice } from "../parts/Notice";
import { ExperimentList } from "./ExperimentList";
import { ExperimentView } from "./ExperimentView";
import { NewExperiment } from "./NewExperiment";

/** `/experiments`: all of them, and a form for a new one; `/experiments/5`: one. */
export function ExperimentsPage() {
  const [, part] = usePath();
  if (part === undefined) {
    return (
      <div className="experiments">
        <ExperimentList />
        <NewExperiment />
      </div>
    );
  }
  const id = Number(part);
  if (!Number.isInteger(id) || id < 1) {
    return (
      <Notice title="There is no such experiment">Experiments are known by numbers: /experiments/5.</Notice>
    );
  }
  return <ExperimentView key={id} id={id} />;
}
