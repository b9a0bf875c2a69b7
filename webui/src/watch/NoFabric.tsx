import { Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useHas } from "../api/queries";
import { Link } from "../app/Link";
import { ProgressBar } from "../experiments/ProgressBar";
import { useEngine, useExperiment } from "../experiments/queries";
import { kindsOf } from "../experiments/submission";
import { Command } from "../parts/Command";
import { Column, Grid } from "../parts/Grid";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";

// These come after the progress.
const SimulatedRun = lazy(async () => ({ default: (await import("./SimulatedRun")).SimulatedRun }));
const RunsSoFar = lazy(async () => ({ default: (await import("../experiments/RunsSoFar")).RunsSoFar }));

/** Show what there is to watch without switches: simulations that run, and how to get to a fabric. */
export function NoFabric() {
  const queue = useHas("/specs") === true;
  return (
    <Column>
      {queue && <Simulations />}
      <Quiet>
        No switch has connected to this controller. What can be done without one, and how to get some:
      </Quiet>
      <Grid least={440} most={4}>
        <Panel title="Take the tour">
          <Text>
            Six steps on what the schemes do, each on a recorded window of a fabric, packet by packet; with
            the keys ← and →.
          </Text>
          <Text mt="xs">
            <Link href="/tour">Begin the tour</Link>
          </Text>
        </Panel>
        {queue && <Begin />}
        <Panel title="Watch a lab, or switches of your own">
          <Text>A fabric of software switches on a Linux machine, with agents on its hosts. As root:</Text>
          <Command block>./capstan lab small --scheme caps</Command>
          <Text>
            It prints the address of its page, where its switches are within seconds. Links can be broken
            there, and the scheme switched. docs/own-fabric.md says what switches of your own need.
          </Text>
        </Panel>
        <Panel title="Play a recording">
          <Text>
            A window of a run, packet by packet, from a file: of a simulation, or of a run on switches.
          </Text>
          <Command block>./capstan simulate small --scheme caps --trace caps.trace</Command>
          <Text>
            <Link href="/watch/replay">Open it in Replay</Link>
          </Text>
        </Panel>
      </Grid>
    </Column>
  );
}

/** Begin an experiment, of the kinds that this controller's queue runs. */
function Begin() {
  const engine = useEngine().data;
  const kinds = kindsOf(engine);
  return (
    <Panel title={kinds[0] === "simulation" ? "Begin a simulation" : "Begin an experiment"}>
      <Text>
        The same flows under several schemes, compared by their completion times.{" "}
        {kinds.includes("lab") &&
          "On switches: each lab is built for its runs, and shown here while they go on; packets that are recorded can be played afterwards. "}
        {kinds.includes("simulation") &&
          "In simulation: without switches, without root; packets of its runs can be played afterwards."}
      </Text>
      <Text mt="xs">
        <Link href="/compare">Choose one and begin it</Link>
      </Text>
    </Panel>
  );
}

/** List those of the queue's experiments that are simulated now. */
function Simulations() {
  const engine = useEngine().data;
  return engine?.running.map((id) => <Simulation key={id} id={id} />);
}

function Simulation({ id }: { id: number }) {
  const experiment = useExperiment(id).data;
  if (!experiment?.simulated) return null;
  return (
    <>
      <Panel title={`A simulation runs: ${experiment.title || experiment.name}`}>
        <ProgressBar experiment={experiment} />
        <Text>
          It is <Link href={`/compare/${id}`}>experiment {id}</Link>: what its links carry shows here as it
          goes on, completion times run by run, and when it has ended its packets can be played there (
          <em>Play again</em>).
        </Text>
      </Panel>
      <Suspense>
        <SimulatedRun experiment={id} />
        <RunsSoFar experiment={experiment} />
      </Suspense>
    </>
  );
}
