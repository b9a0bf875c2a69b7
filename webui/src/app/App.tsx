import { Suspense, useMemo, useState } from "react";
import { Header } from "./Header";
import { Help } from "./Help";
import { useKeys } from "./keyboard";
import { navigate, usePath } from "./location";
import { Navigation } from "./Navigation";
import { useTheme } from "./theme";
import { VIEWS } from "./views";
import { Notice } from "../parts/Notice";
import { ErrorBoundary } from "./ErrorBoundary";

export function App() {
  const [first] = usePath();
  const [helping, setHelping] = useState(false);
  const [theme, toggleTheme] = useTheme();
  const view = first === undefined ? VIEWS[0] : VIEWS.find((candidate) => candidate.path === first);
  const keys = useMemo(
    () => ({
      ...Object.fromEntries(VIEWS.map((target) => [target.key, () => navigate(`/${target.path}`)])),
      "/": () => setHelping(true),
      "?": () => setHelping(true),
      d: toggleTheme,
    }),
    [toggleTheme],
  );
  useKeys(keys);
  const Shown = view?.component;
  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <Header theme={theme} toggleTheme={toggleTheme} help={() => setHelping(true)} />
      <Navigation current={view?.path} />
      <main id="content" tabIndex={-1}>
        {Shown ? (
          <ErrorBoundary key={view.path}>
            <Suspense fallback={<p className="quiet">Loading…</p>}>
              <title>{`${view.title} · Capstan`}</title>
              <h1 className="unseen">{view.title}</h1>
              <Shown />
            </Suspense>
          </ErrorBoundary>
        ) : (
          <Notice title="There is no such page">
            The views are named above; <kbd>/</kbd> lists their keys.
          </Notice>
        )}
      </main>
      {helping && <Help close={() => setHelping(false)} />}
    </>
  );
}
