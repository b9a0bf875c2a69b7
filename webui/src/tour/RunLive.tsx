import { Button, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { change } from "../api/client";
import { askAgain } from "../api/known";
import { useHas } from "../api/queries";
import { navigateFrom } from "../app/location";
import { useRole } from "../app/role";
import type { Experiment } from "../experiments/types";
import { useEngine } from "../experiments/queries";
import { kindsOf } from "../experiments/submission";
import { focusHeading } from "../parts/focus";
import { Quiet } from "../parts/Quiet";
import { liveRun } from "./live";
import { NAMES, type SchemeName } from "./recordings";

/** Begin what a step shows: on real switches, and *watch* that experiment, or, where no worker takes labs, in simulation, and go
 *  to its results. */
export function RunLive({ scheme, watch }: { scheme: SchemeName; watch: (experiment: number) => void }) {
  const queue = useHas("/specs") === true;
  const role = useRole();
  const engine = useEngine().data;
  const kind = kindsOf(engine)[0] ?? "lab";
  const queries = useQueryClient();
  const begin = useMutation({
    mutationFn: () => change<Experiment>("POST", "/experiments", liveRun(scheme, kind)),
    onSuccess: (made) => {
      void askAgain(queries, { queryKey: ["experiments"] });
      if (kind === "lab") watch(made.id);
      else navigateFrom("/tour", `/compare/${made.id}`);
    },
  });
  // Before the queue says what it runs, a lab would be asked for that no worker may take.
  if (!queue || role !== "operate" || engine === undefined) return null;
  return (
    <>
      <Button
        mt="sm"
        onClick={(event) => {
          focusHeading(event.currentTarget);
          begin.mutate();
        }}
        disabled={begin.isPending}
      >
        {kind === "lab" ? `Run ${NAMES[scheme]} live on switches` : `Simulate ${NAMES[scheme]} yourself`}
      </Button>
      <Quiet>
        Three long flows and short ones on four paths,{" "}
        {kind === "lab" ? "a quarter of a minute" : "simulated within seconds"}. Which paths are drawn differs
        from this recording.
      </Quiet>
      {begin.error && (
        <Text role="alert" c="error">
          {begin.error.message}
        </Text>
      )}
    </>
  );
}
