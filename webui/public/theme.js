// Before the first paint: the theme that was chosen here, else what the reader's system prefers.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("capstan-theme");
  } catch {
    // no storage: the system's preference
  }
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
