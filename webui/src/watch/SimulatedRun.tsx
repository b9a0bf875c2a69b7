import { Text } from "@mantine/core";
import { useEffect, useMemo, useState } from "react";
import type { SimulatedRunView } from "../api/schema";
import { useSimulatedRun } from "../experiments/queries";
import { FabricMap } from "../fabric/FabricMap";
import { Legend } from "../fabric/Legend";
import { LinkLoads } from "../fabric/LinkPanel";
import { LinkTable } from "../fabric/LinkTable";
import { LiveStore } from "../live/store";
import { LiveContext } from "../live/useLive";
import { focusFirst, onMap } from "../parts/focus";
import { Panel } from "../parts/Panel";
import { duration } from "../parts/units";

/** Show what links carry in the run of *experiment* that is simulated now; nothing before its first sample. */
export function SimulatedRun({ experiment }: { experiment: number }) {
  const run = useSimulatedRun(experiment).data;
  return run && <Sampled key={run.experiment} run={run} />;
}

/** Show a run of one experiment, or of one point of a sweep, which has a fabric of its own. */
function Sampled({ run }: { run: SimulatedRunView }) {
  const [link, setLink] = useState<string | null>(null);
  const { fabric, loads, scheme, repeat, at_s } = run;
  // Another run's samples begin at 0 again.
  const store = useMemo(() => new LiveStore(), [scheme, repeat]);
  useEffect(() => store.takeLinks(loads, at_s), [store, loads, at_s]);
  const chooseHost = (name: string): void => {
    setLink(fabric.hosts.find((host) => host.name === name)?.link ?? null);
  };
  return (
    <LiveContext value={store}>
      <Panel title={`Fabric under ${run.scheme}, repeat ${run.repeat}`}>
        <Text>
          At {duration(run.at_s)} of the run’s time; loads are means of the {duration(loads.interval_s)}{" "}
          before.
        </Text>
        <FabricMap
          fabric={fabric}
          link={link}
          host={null}
          chooseLink={setLink}
          chooseHost={chooseHost}
          modal={false}
        />
        <Legend modal={false} />
        <LinkTable choose={setLink} />
      </Panel>
      {link !== null && (
        <LinkLoads
          name={link}
          fabric={fabric}
          ofRun
          close={() => {
            focusFirst(onMap("link", link));
            setLink(null);
          }}
        />
      )}
    </LiveContext>
  );
}
