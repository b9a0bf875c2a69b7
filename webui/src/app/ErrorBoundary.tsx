import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { Notice } from "../parts/Notice";

interface Props {
  /** The address of what is shown: at another one it is tried again. */
  at: string;
  children: ReactNode;
}

interface State {
  at: string;
  error: Error | null;
}

/** What browsers say of a file of the page that they did not get: those of another version have other names. */
const NOT_LOADED = /dynamically imported module|module script failed|preload CSS/i;

/** Return why a part of the page failed, in words for people. */
export const failureWords = ({ message }: Error): string =>
  NOT_LOADED.test(message)
    ? "It could not be loaded: the controller does not answer, or is of another version than this page."
    : message;

/** A part of the page that fails takes nothing around it with it, and says what to do. */
export class ErrorBoundary extends Component<Props, State> {
  override state: State = { at: this.props.at, error: null };

  static getDerivedStateFromError(error: Error): Pick<State, "error"> {
    return { error };
  }

  static getDerivedStateFromProps({ at }: Props, before: State): State | null {
    return at === before.at ? null : { at, error: null };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <Notice title="This part of the page failed" kind="error">
        {failureWords(error)} <Button onClick={() => window.location.reload()}>Load the page again</Button>
      </Notice>
    );
  }
}
