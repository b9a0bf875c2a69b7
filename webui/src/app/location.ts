/** The view and what is chosen in it are the page's address, so that a link shows the same to another reader. */

import { useCallback, useMemo, useSyncExternalStore } from "react";

const CHANGED = "capstan:location";

function subscribe(listener: () => void): () => void {
  window.addEventListener("popstate", listener);
  window.addEventListener(CHANGED, listener);
  return () => {
    window.removeEventListener("popstate", listener);
    window.removeEventListener(CHANGED, listener);
  };
}

const pathNow = (): string => window.location.pathname;
const searchNow = (): string => window.location.search;
const address = (): string => pathNow() + searchNow();

/** Go to *to* (path and search), to its top if it is another view; *replace*: without a step in the browser's history. */
export function navigate(to: string, replace = false): void {
  if (to === address()) return;
  const from = pathNow();
  try {
    if (replace) window.history.replaceState(null, "", to);
    else window.history.pushState(null, "", to);
  } catch {
    return; // too many changes in a short time: the browser refuses more for some seconds
  }
  window.dispatchEvent(new Event(CHANGED));
  if (!replace && pathNow() !== from) window.scrollTo(0, 0);
}

/** Return the parts of *path*: `/flows/17` gives `["flows", "17"]`; as it stands where it is no encoding. */
export function partsOf(path: string): string[] {
  return path
    .split("/")
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

/** Return the parts of the page's path. */
export function usePath(): string[] {
  const path = useSyncExternalStore(subscribe, pathNow, pathNow);
  return useMemo(() => partsOf(path), [path]);
}

/** Return *search* with *changes* applied: null or "" removes a field. */
export function withChanges(search: string, changes: Record<string, string | null>): string {
  const parameters = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") parameters.delete(name);
    else parameters.set(name, value);
  }
  const text = parameters.toString();
  return text && `?${text}`;
}

/** Go to *to* unless the reader has left the view at *from* meanwhile: answers may be late. */
export function navigateFrom(from: string, to: string): void {
  if (pathNow().replace(/\/$/, "") === from) navigate(to);
}

/** Return the search part of the address, and a function that changes it in place while the view is open. */
export function useSearch(): [URLSearchParams, (changes: Record<string, string | null>) => void] {
  const search = useSyncExternalStore(subscribe, searchNow, searchNow);
  const path = useSyncExternalStore(subscribe, pathNow, pathNow);
  const parameters = useMemo(() => new URLSearchParams(search), [search]);
  const change = useCallback(
    (changes: Record<string, string | null>) => {
      if (pathNow() === path) navigate(path + withChanges(searchNow(), changes), true);
    },
    [path],
  );
  return [parameters, change];
}
