import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `CAPSTAN_API=http://127.0.0.1:8181 npm run dev` works on the page beside a controller that runs.
export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2022",
    // Charts and tables of a view come when the view is opened; the rest is one file.
    chunkSizeWarningLimit: 600,
  },
  server: {
    proxy: {
      "/api": { target: process.env["CAPSTAN_API"] ?? "http://127.0.0.1:8181", changeOrigin: false },
    },
  },
});
