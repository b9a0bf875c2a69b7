import { Alert } from "@mantine/core";
import type { ReactNode } from "react";

/** Say why there is nothing to see, or what went wrong. */
export function Notice({
  title,
  kind = "empty",
  children,
}: {
  title: string;
  kind?: "empty" | "error";
  children?: ReactNode;
}) {
  const error = kind === "error";
  return (
    <Alert
      title={title}
      role={error ? "alert" : "status"}
      variant="default"
      maw={760}
      styles={{
        root: {
          borderInlineStart: `5px solid ${error ? "var(--bad)" : "var(--mantine-primary-color-filled)"}`,
        },
      }}
    >
      {children}
    </Alert>
  );
}
