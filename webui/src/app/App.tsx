import { VisuallyHidden } from "@mantine/core";
import { Suspense, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { APPEARANCES, useAppearance } from "./Appearance";
import { Header } from "./Header";
import { Help } from "./Help";
import { useKeys } from "./keyboard";
import { navigate, usePath } from "./location";
import { movedTo } from "./moved";
import { addressOf, VIEWS, viewOf } from "./views";
import { WatchSource } from "../watch/WatchSource";
import { focusIfLost } from "../parts/focus";
import { Notice } from "../parts/Notice";
import { Quiet } from "../parts/Quiet";
import { ErrorBoundary } from "./ErrorBoundary";
import styles from "./App.module.css";

export function App() {
  const parts = usePath();
  const moved = movedTo(window.location.pathname, window.location.search);
  useLayoutEffect(() => {
    if (moved !== null) navigate(moved, true);
  }, [moved]);
  const [helping, setHelping] = useState(false);
  const { name, choose } = useAppearance();
  const place = moved === null ? viewOf(parts) : null;
  const view = place?.view;
  const keys = useMemo(() => {
    const next = APPEARANCES[(APPEARANCES.indexOf(name) + 1) % APPEARANCES.length] ?? "light";
    return {
      ...Object.fromEntries(VIEWS.map((target) => [target.key, () => navigate(`/${target.path}`)])),
      ...Object.fromEntries(
        (view?.sections ?? []).map((section, index) => [
          String(index + 1),
          () => view && navigate(addressOf(view, section)),
        ]),
      ),
      "/": () => setHelping(true),
      "?": () => setHelping(true),
      d: () => choose(next),
    };
  }, [name, choose, view]);
  useKeys(keys);
  const Shown = place?.section.component;
  const shownAt = useRef(parts);
  useEffect(() => {
    if (shownAt.current !== parts) focusIfLost("main");
    shownAt.current = parts;
  }, [parts]);
  return (
    <>
      <a className={styles["skip"]} href="#content">
        Skip to the content
      </a>
      <Header place={place} help={() => setHelping(true)} />
      <main id="content" tabIndex={-1} className={styles["content"]}>
        {place && Shown ? (
          <ErrorBoundary key={addressOf(place.view, place.section)} at={parts.join("/")}>
            <Suspense fallback={<Quiet>Loading…</Quiet>}>
              <title>{`${place.section.title} · Capstan`}</title>
              <VisuallyHidden component="h1">
                {place.view.title}: {place.section.title}
              </VisuallyHidden>
              {place.view.path === "watch" ? (
                <WatchSource>
                  <Shown />
                </WatchSource>
              ) : (
                <Shown />
              )}
            </Suspense>
          </ErrorBoundary>
        ) : (
          moved === null && (
            <Notice title="There is no such page">
              The views are named above; the key / lists their keys.
            </Notice>
          )
        )}
      </main>
      <Help opened={helping} close={() => setHelping(false)} />
    </>
  );
}
