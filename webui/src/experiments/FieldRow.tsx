import { Autocomplete, CloseButton, Group, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { focusAdding } from "../parts/focus";

interface Props {
  label: string;
  placeholder: string;
  field: string;
  /** Names of the spec's fields. */
  fields: readonly string[];
  wrong?: boolean;
  edit: (field: string) => void;
  remove: () => void;
  /** Says what the button at its end does. */
  removal: string;
  /** What the field is to be, and a remark. */
  children: ReactNode;
  remark?: string;
}

/** Edit a field of the spec: its name, and its value. */
export function FieldRow(props: Props) {
  return (
    <>
      <Group gap="xs" wrap="nowrap" mt={6}>
        <Autocomplete
          aria-label={props.label}
          placeholder={props.placeholder}
          flex={2}
          data={[...props.fields]}
          limit={30}
          error={props.wrong}
          value={props.field}
          onChange={props.edit}
        />
        <span aria-hidden="true">=</span>
        {props.children}
        <CloseButton
          size="sm"
          aria-label={props.removal}
          onClick={(event) => {
            focusAdding(event.currentTarget);
            props.remove();
          }}
        />
      </Group>
      {props.remark && <Text c="dimmed">{props.remark}</Text>}
    </>
  );
}
