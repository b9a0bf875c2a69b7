import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** Show a remark. */
export function Quiet({ children }: { children: ReactNode }) {
  return (
    <Text c="dimmed" my={6}>
      {children}
    </Text>
  );
}
