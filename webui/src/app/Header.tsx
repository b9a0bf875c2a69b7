import { Button, SegmentedControl, Text, VisuallyHidden } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useLayoutEffect, useState } from "react";
import { follow } from "../api/known";
import { useHas, useHealth, useRun, useScheme } from "../api/queries";
import { RUN, SourceContext } from "../api/source";
import { useLive, useStore } from "../live/useLive";
import { connectionWords } from "../live/words";
import { SchemeMark } from "../parts/SchemeMark";
import { APPEARANCES, type AppearanceName, useAppearance } from "./Appearance";
import { Link } from "./Link";
import { useLogOut, useRole } from "./role";
import { addressOf, type Section, type View, VIEWS } from "./views";
import styles from "./App.module.css";

interface Props {
  place: { view: View; section: Section } | null;
  help: () => void;
}

const NAMES: Readonly<Record<AppearanceName, string>> = {
  light: "Light",
  dark: "Dark",
  projector: "Projector",
};

export function Header({ place, help }: Props) {
  const role = useRole();
  const logOut = useLogOut();
  const { name, choose } = useAppearance();
  return (
    <header>
      <div className={`${styles["bar"]} ${styles["top"]} ${logOut ? styles["crowded"] : ""}`}>
        <Link href="/watch" className={styles["brand"]} aria-label="Capstan">
          <img src="/icon.svg" alt="" width="24" height="24" /> <span>Capstan</span>
        </Link>
        <nav aria-label="Views" className={styles["links"]}>
          {VIEWS.map((view) => (
            <Link
              key={view.path}
              href={`/${view.path}`}
              aria-current={view === place?.view ? "page" : undefined}
              aria-keyshortcuts={view.key}
              title={`${view.about} (key ${view.key})`}
            >
              {view.title}
            </Link>
          ))}
        </nav>
        <span className={styles["state"]}>
          <FabricState />
          <ConnectionState />
        </span>
        {role === "read" && <Text span>read only</Text>}
        <SegmentedControl
          size="xs"
          aria-label="Appearance"
          value={name}
          onChange={(chosen) => choose(chosen as AppearanceName)}
          data={APPEARANCES.map((value) => ({ value, label: NAMES[value] }))}
        />
        <Button onClick={help} title="Key /">
          Help
        </Button>
        {logOut && <Button onClick={logOut}>Log out</Button>}
      </div>
      {place && place.view.sections.length > 1 && (
        <nav
          aria-label={`Sections of ${place.view.title}`}
          className={`${styles["bar"]} ${styles["links"]} ${styles["sections"]}`}
        >
          {place.view.sections.map((section, index) => (
            <Link
              key={section.path}
              href={addressOf(place.view, section)}
              aria-current={section === place.section ? "page" : undefined}
              aria-keyshortcuts={String(index + 1)}
              title={`${section.about} (key ${index + 1})`}
            >
              {section.title}
            </Link>
          ))}
        </nav>
      )}
    </header>
  );
}

/** Show the scheme of the followed run, else the scheme in force, or why the fabric is not ready. */
function FabricState() {
  const health = useHealth().data;
  const queue = useHas("/specs") === true;
  const { experiment, here } = useRun();
  if (experiment !== null && !here) {
    return (
      <SourceContext value={RUN}>
        <RunState experiment={experiment} />
      </SourceContext>
    );
  }
  if (!health) return null;
  // A queue of experiments needs no fabric of its own: each runs in a lab that is built for it.
  if (queue && health.switches === 0) {
    return (
      <Text
        span
        title="There is no fabric: each experiment builds its own. Switches that call this controller would be shown, too."
      >
        no fabric
      </Text>
    );
  }
  return (
    <>
      {experiment === null ? (
        <Text span data-testid="scheme" title="The scheme in force">
          <SchemeMark name={health.scheme} />
        </Text>
      ) : (
        <RunState experiment={experiment} />
      )}
      {!health.ready && (
        <Text span className={styles["stale"]} title={health.reasons.join("; ")}>
          ⚠ not ready: {health.reasons[0]}
        </Text>
      )}
    </>
  );
}

/** Show the experiment whose run is followed, and the scheme in force on its fabric. */
function RunState({ experiment }: { experiment: number }) {
  const queries = useQueryClient();
  useLayoutEffect(() => follow(queries, experiment), [queries, experiment]);
  const scheme = useScheme().data?.scheme;
  return (
    <Text
      span
      className={styles["run"]}
      data-testid="scheme"
      title="The experiment whose run is followed, and the scheme in force on its fabric"
    >
      <Link href={`/compare/${experiment}`}>
        <span>experiment </span>
        <span>{experiment}</span>
      </Link>
      {scheme && (
        <>
          : <SchemeMark name={scheme.name} />
        </>
      )}
    </Text>
  );
}

/** Show whether the data are current and, if not, for how long they have not been. */
function ConnectionState() {
  const connection = useLive("connection", (store) => store.connection);
  const store = useStore();
  const [, setTick] = useState(0);
  useEffect(() => {
    if (connection === "live") return;
    const timer = setInterval(() => setTick((tick) => tick + 1), 1000);
    return () => clearInterval(timer);
  }, [connection]);
  const silentS = store.receivedAt === null ? null : (performance.now() - store.receivedAt) / 1000;
  return (
    <>
      <Text
        span
        className={connection === "live" ? styles["live"] : styles["stale"]}
        aria-hidden="true"
        data-testid="connection"
      >
        {connectionWords(connection, silentS)}
      </Text>
      {/* Said once a change: the age would be said each second. */}
      <VisuallyHidden role="status">{connectionWords(connection, null)}</VisuallyHidden>
    </>
  );
}
