import { type ReactNode, useEffect, useId, useRef } from "react";

/** A modal dialog; Esc and its button close it. */
export function Dialog({
  title,
  close,
  children,
}: {
  title: string;
  close: () => void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby={heading}>
      <div className="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button onClick={() => dialog.current?.close()}>Close</button>
      </div>
      {children}
    </dialog>
  );
}
