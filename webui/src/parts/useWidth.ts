import { type RefObject, useEffect, useRef, useState } from "react";

/** The width in pixels that an element has; *first* until it is known. Drawings of that width keep their text's size. */
export function useWidth<T extends Element>(first: number): [RefObject<T | null>, number] {
  const element = useRef<T>(null);
  const [width, setWidth] = useState(first);
  useEffect(() => {
    const watched = element.current;
    if (!watched) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width > 0) setWidth(Math.round(entry.contentRect.width));
    });
    observer.observe(watched);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}
