import "./style/mantine.css";
import "uplot/dist/uPlot.min.css";
import "./style/page.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { DEFAULTS } from "./api/queries";
import { Appearance } from "./app/Appearance";
import { ErrorBoundary } from "./app/ErrorBoundary";
import { Login } from "./app/Login";
import { LiveContext } from "./live/useLive";
import { LiveStore } from "./live/store";

const queries = new QueryClient({ defaultOptions: DEFAULTS });
const store = new LiveStore();
const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <LiveContext value={store}>
        <Appearance>
          <ErrorBoundary at="page">
            <Login />
          </ErrorBoundary>
        </Appearance>
      </LiveContext>
    </QueryClientProvider>
  </StrictMode>,
);
