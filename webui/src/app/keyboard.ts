/** Single keys for views; not while the user types. */

import { useEffect } from "react";

/** Whether a key pressed on *target* is text for it. */
export function typesInto(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (
    target.isContentEditable ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  ) {
    return true;
  }
  const silent = ["button", "checkbox", "radio", "submit", "reset", "range", "color", "file"];
  return target instanceof HTMLInputElement && !silent.includes(target.type);
}

/** Call the handler of a key that is pressed alone. */
export function useKeys(handlers: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    function pressed(event: KeyboardEvent): void {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (typesInto(event.target) || document.querySelector("[role=dialog]")) return;
      const handler = handlers[event.key];
      if (!handler) return;
      event.preventDefault();
      handler();
    }
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [handlers]);
}
