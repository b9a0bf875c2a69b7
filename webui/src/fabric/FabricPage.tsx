import { useCallback } from "react";
import { useFabric, useScheme } from "../api/queries";
import { useSearch } from "../app/location";
import { QueryResult } from "../parts/QueryResult";
import { Notice } from "../parts/Notice";
import { FabricMap } from "./FabricMap";
import { HostPanel } from "./HostPanel";
import { Legend } from "./Legend";
import { LinkPanel } from "./LinkPanel";
import { LinkTable } from "./LinkTable";
import { RecentEvents } from "./RecentEvents";
import { hasModes } from "./modes";

export function FabricPage() {
  const fabric = useFabric();
  const scheme = useScheme().data?.scheme;
  const [search, change] = useSearch();
  const link = search.get("link");
  const host = search.get("host");
  const chooseLink = useCallback((name: string) => change({ link: name, host: null }), [change]);
  const chooseHost = useCallback((name: string) => change({ host: name, link: null }), [change]);
  const close = useCallback(() => change({ host: null, link: null }), [change]);
  const modal = scheme ? hasModes(scheme) : false;
  return (
    <QueryResult query={fabric} what="fabric">
      {(view) =>
        view.switches.length === 0 ? (
          <Notice title="No switch has connected yet">
            Switches are expected on the controller's OpenFlow address; a lab's are there within seconds
            (./capstan lab small), an own fabric's as docs/own-fabric.md says. Experiments need none here:
            each builds its own.
          </Notice>
        ) : (
          <div className={link || host ? "split" : ""}>
            <section aria-label="Fabric">
              <FabricMap
                fabric={view}
                link={link}
                host={host}
                chooseLink={chooseLink}
                chooseHost={chooseHost}
                modal={modal}
              />
              <Legend modal={modal} />
              {!view.settled && <p className="quiet">Links are still being discovered.</p>}
              <RecentEvents />
              <LinkTable choose={chooseLink} />
            </section>
            {link && <LinkPanel name={link} close={close} />}
            {host && <HostPanel name={host} close={close} />}
          </div>
        )
      }
    </QueryResult>
  );
}
