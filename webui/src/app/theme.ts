/** Light or dark: chosen here and remembered, else as the reader's system prefers (public/theme.js sets it first). */

import { useEffect, useState } from "react";

export type Theme = "light" | "dark";
const KEY = "capstan-theme";

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(() =>
    document.documentElement.dataset["theme"] === "dark" ? "dark" : "light",
  );
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  function toggle(): void {
    const other = theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, other);
    } catch {
      // not remembered, then
    }
    setTheme(other);
  }
  return [theme, toggle];
}
