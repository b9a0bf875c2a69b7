import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** A remark. */
export function Quiet({ children }: { children: ReactNode }) {
  return (
    <Text c="dimmed" my={6}>
      {children}
    </Text>
  );
}
