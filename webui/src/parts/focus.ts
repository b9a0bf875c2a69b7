/** Where the focus goes when the control that had it is about to go: else a keyboard starts at the page's top again. */

/** Focus the first of *selectors* that is on the page. */
export function focusFirst(...selectors: string[]): void {
  for (const selector of selectors) {
    const element = document.querySelector<HTMLElement | SVGElement>(selector);
    if (element) return element.focus();
  }
}

/** Focus *selector*, without scrolling to it, if what had the focus has gone with the view before. */
export function focusIfLost(selector: string): void {
  const { activeElement, body } = document;
  if (activeElement !== null && activeElement !== body) return;
  document.querySelector<HTMLElement>(selector)?.focus({ preventScroll: true });
}

/** Focus the heading of the panel that *control* is in. */
export function focusHeading(control: Element): void {
  control.closest("section")?.querySelector<HTMLElement>("h2")?.focus();
}

/** Focus the last button of the form's part that *control* is in, by which rows such as its own are added. */
export function focusAdding(control: Element): void {
  const buttons = control.closest("fieldset")?.querySelectorAll<HTMLElement>("button") ?? [];
  buttons[buttons.length - 1]?.focus();
}

/** Return the selector of the link or host of the map that is called *name*. */
export const onMap = (kind: "link" | "host", name: string): string => `[data-${kind}="${CSS.escape(name)}"]`;
