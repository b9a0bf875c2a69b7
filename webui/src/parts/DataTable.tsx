import { Button, Table } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { count } from "./units";

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
  /** Drawn again with each sample: the first rows alone, unless all are asked for. */
  live?: boolean;
}

/** Rows that a browser draws again four times a second beside everything else. */
const MOST_LIVE = 128;

/** Show figures in rows: names at the left, the others aligned at the right. */
export function DataTable({ label, head, rows, maxHeight, live = false }: Props) {
  const [all, setAll] = useState(false);
  const shown = live && !all ? rows.slice(0, MOST_LIVE) : rows;
  const side = (index: number) => (index === 0 ? "left" : "right");
  return (
    <>
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
            {shown.map((row) => (
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
      {shown.length < rows.length && (
        <Button
          mt={6}
          onClick={(event) => {
            (event.currentTarget.previousElementSibling as HTMLElement | null)?.focus();
            setAll(true);
          }}
        >
          Show all {count(rows.length, "row")}
        </Button>
      )}
    </>
  );
}
