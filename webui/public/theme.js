// Before the first paint: the appearance that was chosen here, else what the reader's system prefers.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("capstan-theme");
  } catch {
    // no storage: the system's preference
  }
  if (!["light", "dark", "projector"].includes(chosen)) {
    chosen = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.dataset.appearance = chosen;
  document.documentElement.dataset.mantineColorScheme = chosen === "dark" ? "dark" : "light";
})();
