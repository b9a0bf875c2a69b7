import { Checkbox, Group, NativeSelect } from "@mantine/core";
import { useSchemes } from "../api/queries";
import { schemeOption } from "../understand/composition";
import type { Kind } from "./submission";

interface Props {
  /** In what it would run: some schemes are for simulations alone. */
  kind: Kind;
  /** Those of the preset. */
  usual: readonly string[];
  chosen: readonly string[];
  choose: (schemes: string[]) => void;
}

/** Choose which schemes are compared: the preset's, and any other that the controller has. */
export function SchemeChoice({ kind, usual, chosen, choose }: Props) {
  const all = useSchemes().data?.schemes ?? [];
  const shown = [...usual, ...chosen.filter((name) => !usual.includes(name))];
  const others = all.filter((scheme) => !shown.includes(scheme.name));
  return (
    <Group align="end">
      <Checkbox.Group
        label="Schemes"
        size="xs"
        value={[...chosen]}
        onChange={(names) => choose(shown.filter((name) => names.includes(name)))}
      >
        <Group gap="sm" mt={4}>
          {shown.map((name) => (
            <Checkbox key={name} value={name} label={name} />
          ))}
        </Group>
      </Checkbox.Group>
      {others.length > 0 && (
        <NativeSelect
          aria-label="Compare another scheme, too"
          maw={220}
          value=""
          onChange={(event) => choose([...chosen, event.target.value])}
          data={[
            { value: "", label: "and another …" },
            ...others.map((scheme) => schemeOption(scheme, kind === "lab")),
          ]}
        />
      )}
    </Group>
  );
}
