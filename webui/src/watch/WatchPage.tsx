import { lazy, type ReactNode, Suspense, useCallback } from "react";
import { useFabric, useFaults, useScheme } from "../api/queries";
import { useSource } from "../api/source";
import { useSearch } from "../app/location";
import { FabricMap } from "../fabric/FabricMap";
import { HostPanel } from "../fabric/HostPanel";
import { Legend } from "../fabric/Legend";
import { LinkTable } from "../fabric/LinkTable";
import { hasModes } from "../fabric/modes";
import { RecentEvents } from "../fabric/RecentEvents";
import { focusFirst, onMap } from "../parts/focus";
import { Column, Grid, Split } from "../parts/Grid";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { ClassPaths } from "../paths/ClassPaths";
import { Queues } from "../queues/QueuesPage";
import { FollowedRun } from "./FollowedRun";

// Their charts come after the fabric is drawn.
const LinkPanel = lazy(async () => ({ default: (await import("../fabric/LinkPanel")).LinkPanel }));
const CompletionTimes = lazy(async () => ({ default: (await import("../fct/FctPage")).CompletionTimes }));

const NoFabric = lazy(async () => ({ default: (await import("./NoFabric")).NoFabric }));

const FULLEST = 6;

export function WatchPage() {
  return (
    <>
      <FollowedRun />
      <LiveFabric />
    </>
  );
}

/** Show the fabric, and beside it (*stacked*: below it) the flows' figures, or the link or host that was chosen. */
export function LiveFabric({ stacked = false }: { stacked?: boolean }) {
  const fabric = useFabric();
  const scheme = useScheme().data?.scheme;
  const faults = useFaults().data?.faults;
  const [search, change] = useSearch();
  const link = search.get("link");
  const host = search.get("host");
  const chooseLink = useCallback((name: string) => change({ link: name, host: null }), [change]);
  const chooseHost = useCallback((name: string) => change({ host: name, link: null }), [change]);
  const close = useCallback(() => {
    if (link) focusFirst(onMap("link", link));
    if (host) focusFirst(onMap("host", host));
    change({ host: null, link: null });
  }, [link, host, change]);
  const modal = scheme ? hasModes(scheme) : false;
  return (
    <QueryResult query={fabric} subject="fabric">
      {(view) =>
        view.switches.length === 0 ? (
          <WithoutSwitches />
        ) : (
          <Placed
            stacked={stacked}
            fabric={
              <Panel title="Fabric">
                <FabricMap
                  fabric={view}
                  link={link}
                  host={host}
                  chooseLink={chooseLink}
                  chooseHost={chooseHost}
                  modal={modal}
                  faults={faults}
                />
                <Legend modal={modal} />
                {!view.settled && <Quiet>Links are still being discovered.</Quiet>}
              </Panel>
            }
            flows={
              <Suspense fallback={<Quiet>Loading…</Quiet>}>
                {link && <LinkPanel name={link} close={close} />}
                {host && <HostPanel name={host} close={close} />}
                {!link && !host && (
                  <>
                    <ClassPaths />
                    <CompletionTimes />
                  </>
                )}
              </Suspense>
            }
            rest={
              <>
                <Grid least={360}>
                  <Queues first={FULLEST} />
                  <RecentEvents />
                </Grid>
                <LinkTable choose={chooseLink} />
              </>
            }
          />
        )
      }
    </QueryResult>
  );
}

interface Parts {
  stacked: boolean;
  fabric: ReactNode;
  flows: ReactNode;
  rest: ReactNode;
}

/** Lay out the flows' figures beside the fabric and the rest, or between them. */
function Placed({ stacked, fabric, flows, rest }: Parts) {
  if (stacked) {
    return (
      <Column>
        {fabric}
        {flows}
        {rest}
      </Column>
    );
  }
  return (
    <Split>
      <Column>
        {fabric}
        {rest}
      </Column>
      <Column>{flows}</Column>
    </Split>
  );
}

/** Say, in place of a fabric, that there are no switches. */
function WithoutSwitches() {
  if (useSource() !== "") {
    return (
      <Notice title="The fabric of this run is being built">Its switches show here as they connect.</Notice>
    );
  }
  return (
    <Suspense fallback={<Quiet>Loading…</Quiet>}>
      <NoFabric />
    </Suspense>
  );
}
