import { CloseButton, Group, Paper, Title } from "@mantine/core";
import { type ReactNode, useId } from "react";

/** Group related content under a heading; with *close*, a button that closes it. *filled*: by parts that grow. */
export function Panel({
  title,
  close,
  filled = false,
  children,
}: {
  title: ReactNode;
  close?: () => void;
  filled?: boolean;
  children: ReactNode;
}) {
  const heading = useId();
  return (
    <Paper
      component="section"
      withBorder
      p="sm"
      bg="var(--card)"
      aria-labelledby={heading}
      miw={0}
      {...(filled ? { display: "flex", style: { flexDirection: "column" } } : {})}
    >
      <Group justify="space-between" wrap="nowrap" align="start" mb={6}>
        <Title order={2} id={heading} tabIndex={-1}>
          {title}
        </Title>
        {close && <CloseButton size="sm" onClick={close} aria-label="Close this panel" />}
      </Group>
      {children}
    </Paper>
  );
}
