import type { ReactNode } from "react";

/** Says in words why there is nothing to see, or what went wrong. */
export function Notice({
  title,
  kind = "empty",
  children,
}: {
  title: string;
  kind?: "empty" | "error";
  children?: ReactNode;
}) {
  return (
    <div className={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>
      <strong>{title}</strong>
      {children !== undefined && <div>{children}</div>}
    </div>
  );
}
