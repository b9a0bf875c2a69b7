import { useEffect, useState } from "react";
import { useHas, useHealth } from "../api/queries";
import { useLive, useStore } from "../live/useLive";
import { duration } from "../parts/units";
import { SchemeMark } from "../parts/SchemeMark";
import { Link } from "./Link";
import { useRole } from "./role";
import type { Theme } from "./theme";

interface Props {
  theme: Theme;
  toggleTheme: () => void;
  help: () => void;
}

export function Header({ theme, toggleTheme, help }: Props) {
  const health = useHealth();
  const queue = useHas("/specs") === true;
  const role = useRole();
  // A queue of experiments needs no fabric of its own: each runs in a lab that is built for it.
  const fabricless = queue && health.data?.switches === 0;
  return (
    <header>
      <Link href="/fabric" className="brand">
        <img src="/icon.svg" alt="" width="26" height="26" /> Capstan
      </Link>
      {health.data && (
        <span className="in-force">
          scheme <SchemeMark name={health.data.scheme} />
        </span>
      )}
      <ConnectionState />
      {fabricless && (
        <span
          className="state"
          title="Each experiment builds its own; switches that call this controller would be shown, too."
        >
          no fabric: experiments only
        </span>
      )}
      {health.data && !health.data.ready && !fabricless && (
        <span className="state warn" title={health.data.reasons.join("; ")}>
          ⚠ not ready: {health.data.reasons[0]}
        </span>
      )}
      <span className="spring" />
      {role === "read" && <span className="state">read only</span>}
      <button onClick={toggleTheme} aria-label={`${theme === "dark" ? "Light" : "Dark"} theme`} title="Key d">
        {theme === "dark" ? "☀ Light" : "☾ Dark"}
      </button>
      <button onClick={help} title="Key /">
        Help
      </button>
    </header>
  );
}

/** Whether what is shown is of now; for how long not, if not. */
function ConnectionState() {
  const connection = useLive("connection", (store) => store.connection);
  const store = useStore();
  const [, setTick] = useState(0);
  useEffect(() => {
    if (connection === "live") return;
    const timer = setInterval(() => setTick((tick) => tick + 1), 1000);
    return () => clearInterval(timer);
  }, [connection]);
  const age =
    store.receivedAt === null
      ? ""
      : `, data ${duration(Math.floor((performance.now() - store.receivedAt) / 1000))} old`;
  const words = {
    connecting: "◌ connecting…",
    live: "● live",
    old: `◐ no updates${age}`,
    lost: `○ connection lost${age}; trying again`,
  }[connection];
  return (
    <span className={`state ${connection}`} role="status" data-testid="connection">
      {words}
    </span>
  );
}
