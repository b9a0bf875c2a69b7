import { useFabric } from "../api/queries";
import { useLive, useStore } from "../live/useLive";
import { Grid } from "../parts/Grid";
import { Panel } from "../parts/Panel";
import { inOrder, stampNames } from "./names";
import { PathBars } from "./PathBars";
import { classCounts } from "./shares";

const WINDOW_S = 10;
const CLASSES = ["short", "long"] as const;

/** Show all flows of the last seconds together: the share of each class's packets on each path. */
export function ClassPaths() {
  const sample = useLive("flows", (store) => store.flows);
  const fabric = useFabric().data;
  const history = useStore().flowHistory;
  const names = stampNames(fabric);
  const counts = sample ? classCounts(history.recent(WINDOW_S), sample.at - WINDOW_S) : new Map();
  const top = Math.max(0, ...(fabric?.switches.map((switchView) => switchView.tier ?? 0) ?? []));
  const turns =
    fabric?.switches
      .filter((switchView) => switchView.tier === top && switchView.stamp)
      .map((switchView) => String(switchView.stamp)) ?? [];
  return (
    <Panel title={`Paths of all flows, last ${WINDOW_S} s`}>
      <Grid least={280} gap={36}>
        {CLASSES.map((name) => {
          const packets = counts.get(name) ?? {};
          return (
            <PathBars
              key={name}
              title={`${name === "short" ? "Short" : "Long"} flows`}
              counts={packets}
              stamps={inOrder([...turns, ...Object.keys(packets)], names)}
              names={names}
              testId={`class-${name}`}
            />
          );
        })}
      </Grid>
    </Panel>
  );
}
