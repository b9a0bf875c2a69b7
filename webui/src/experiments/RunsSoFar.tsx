import { useMemo } from "react";
import { SchemeDistribution } from "../fct/SchemeDistribution";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { count } from "../parts/units";
import { MOST_FLOWS, useFlowRecords } from "./queries";
import { shortFlowTimes } from "./times";
import type { Experiment } from "./types";

/** Return the completion times of short flows of the runs that are over, by scheme, and whether there are more. */
export function useShortFlowTimes(experiment: Experiment) {
  const records = useFlowRecords(experiment.id, experiment.runs?.length ?? 0).data;
  const times = useMemo(() => shortFlowTimes(experiment, records ?? []), [experiment, records]);
  return { times, isPart: (records?.length ?? 0) >= MOST_FLOWS };
}

/** Show the completion times of a running experiment's runs that are over; nothing before the first. */
export function RunsSoFar({ experiment }: { experiment: Experiment }) {
  const { times, isPart } = useShortFlowTimes(experiment);
  if (times.length === 0) return null;
  return (
    <Panel title={`Completion times of short flows: ${count(experiment.runs?.length ?? 0, "run")} so far`}>
      <SchemeDistribution of={times} />
      <Quiet>Not all runs are over: schemes have had different numbers of flows.</Quiet>
      {isPart && <FirstFlows />}
    </Panel>
  );
}

/** Say that curves are of a part of the flows. */
export function FirstFlows() {
  return (
    <Quiet>
      Drawn of the first {count(MOST_FLOWS, "flow")}, in the order in which runs ended: schemes may have
      different numbers of them. All are in the files of the experiment.
    </Quiet>
  );
}
