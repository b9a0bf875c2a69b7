import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { Notice } from "../parts/Notice";

/** A view that fails takes nothing else with it, and says what to do. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <Notice title="This view failed" kind="error">
        {error.message} <Button onClick={() => window.location.reload()}>Load the page again</Button>
      </Notice>
    );
  }
}
