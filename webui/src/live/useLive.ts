/** Slices of the store for components. */

import { createContext, useCallback, useContext, useSyncExternalStore } from "react";
import { LiveStore, type Slice } from "./store";

export const LiveContext = createContext<LiveStore>(new LiveStore());

export function useStore(): LiveStore {
  return useContext(LiveContext);
}

/**
 * Return what *read* gives, read again whenever *slice* changes; it must give the same object while nothing has
 * changed.
 */
export function useLive<T>(slice: Slice, read: (store: LiveStore) => T): T {
  const store = useStore();
  const subscribe = useCallback((listener: () => void) => store.subscribe(slice, listener), [store, slice]);
  const now = () => read(store);
  return useSyncExternalStore(subscribe, now, now);
}
