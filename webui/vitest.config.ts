import { defineConfig, mergeConfig } from "vitest/config";

import page from "./vite.config";

// Apart from the page's own: where the page is only built, vitest is not installed.
export default mergeConfig(
  page,
  defineConfig({ test: { environment: "node", include: ["tests/**/*.test.ts"] } }),
);
