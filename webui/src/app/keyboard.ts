/** Single keys for views; not while the user types, nor arrow keys where a control takes them. */

import { useEffect } from "react";

/** Return true if a key pressed on *target* is text for it. */
function typesInto(target: EventTarget | null): boolean {
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

/** Controls that arrow keys operate: choices of a group, sliders. */
const BY_ARROWS = "input[type=radio], [role=radio], [role=slider]";

/** Return true if *target* is a box that is scrolled to the side; links within text have no width of their own. */
const isWide = ({ tabIndex, clientWidth, scrollWidth }: HTMLElement): boolean =>
  tabIndex === 0 && clientWidth > 0 && scrollWidth > clientWidth;

/** Return true if *key* is for *target* itself: text, or an arrow that changes its value or scrolls it. */
export function isFor(target: EventTarget | null, key: string): boolean {
  if (typesInto(target)) return true;
  if (!key.startsWith("Arrow") || !(target instanceof HTMLElement)) return false;
  return target.closest(BY_ARROWS) !== null || isWide(target);
}

/** Call the handler of a key that is pressed alone. */
export function useKeys(handlers: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    function pressed(event: KeyboardEvent): void {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (isFor(event.target, event.key) || document.querySelector("[role=dialog]")) return;
      const handler = handlers[event.key];
      if (!handler) return;
      event.preventDefault();
      handler();
    }
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [handlers]);
}
