import { usePath } from "../app/location";
import { Grid } from "../parts/Grid";
import { Notice } from "../parts/Notice";
import { ExperimentList } from "./ExperimentList";
import { ExperimentView } from "./ExperimentView";
import { NewExperiment } from "./NewExperiment";

/** Show all experiments and a form for a new one (`/compare`), or a single experiment (`/compare/5`). */
export function ExperimentsPage() {
  const [, part] = usePath();
  if (part === undefined) {
    return (
      <Grid>
        <ExperimentList />
        <NewExperiment />
      </Grid>
    );
  }
  const id = Number(part);
  if (!Number.isInteger(id) || id < 1) {
    return <Notice title="There is no such experiment">Experiments are known by numbers: /compare/5.</Notice>;
  }
  return <ExperimentView key={id} id={id} />;
}
