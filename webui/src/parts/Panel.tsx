import { type ReactNode, useId } from "react";

/** What belongs to one chosen thing, beside the view; its button closes it. */
export function Panel({
  title,
  close,
  children,
}: {
  title: ReactNode;
  close?: () => void;
  children: ReactNode;
}) {
  const heading = useId();
  return (
    <section className="panel" aria-labelledby={heading}>
      <div className="panel-head">
        <h2 id={heading}>{title}</h2>
        {close && (
          <button onClick={close} aria-label="Close this panel">
            ✕
          </button>
        )}
      </div>
      {children}
    </section>
  );
}
