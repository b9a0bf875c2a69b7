import { Table } from "@mantine/core";
import type { ReactNode } from "react";

export interface Row {
  key: string | number;
  /** The first names the row. */
  cells: readonly ReactNode[];
}

interface Props {
  label: string;
  head: readonly ReactNode[];
  rows: readonly Row[];
  /** Where it scrolls within itself. */
  maxHeight?: number | string;
}

/** Show figures in rows: names at the left, the others aligned at the right. */
export function DataTable({ label, head, rows, maxHeight }: Props) {
  const side = (index: number) => (index === 0 ? "left" : "right");
  return (
    <Table.ScrollContainer
      minWidth={0}
      type="native"
      mah={maxHeight}
      tabIndex={0}
      role="group"
      aria-label={label}
      style={{ overflow: "auto" }}
    >
      <Table aria-label={label} horizontalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            {head.map((title, index) => (
              <Table.Th key={index} scope="col" ta={side(index)} c="dimmed">
                {title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.key}>
              {row.cells.map((cell, index) =>
                index === 0 ? (
                  <Table.Th key={index} scope="row" fw={500}>
                    {cell}
                  </Table.Th>
                ) : (
                  <Table.Td key={index} ta="right" style={{ whiteSpace: "nowrap" }}>
                    {cell}
                  </Table.Td>
                ),
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
