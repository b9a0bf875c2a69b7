import { defineConfig, mergeConfig } from "vitest/config";

import page from "./vite.config";

// Apart from the page's own: where the page is only built, vitest is not installed.
export default mergeConfig(
  page,
  defineConfig({
    test: {
      environment: "node",
      include: ["tests/**/*.test.ts"],
      // Every file's own copy of React and Plot took five times the processor time of the tests. What a test
      // stubs ends with it instead.
      isolate: false,
      pool: "threads",
      maxWorkers: 1,
      unstubGlobals: true,
      restoreMocks: true,
    },
  }),
);
