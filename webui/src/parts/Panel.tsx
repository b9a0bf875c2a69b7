import { CloseButton, Group, Paper, Title } from "@mantine/core";
import { type ReactNode, useId } from "react";

/** What belongs together, under a heading; with *close*, a button that closes it. */
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
    <Paper component="section" withBorder p="sm" bg="var(--card)" aria-labelledby={heading} miw={0}>
      <Group justify="space-between" wrap="nowrap" align="start" mb={6}>
        <Title order={2} id={heading}>
          {title}
        </Title>
        {close && <CloseButton size="sm" onClick={close} aria-label="Close this panel" />}
      </Group>
      {children}
    </Paper>
  );
}
