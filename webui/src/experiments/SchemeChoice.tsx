import { useSchemes } from "../api/queries";

interface Props {
  /** Those of the preset. */
  usual: readonly string[];
  chosen: readonly string[];
  choose: (schemes: string[]) => void;
}

/** Which schemes are compared: the preset's, and any other that the controller has. */
export function SchemeChoice({ usual, chosen, choose }: Props) {
  const all = useSchemes().data?.schemes ?? [];
  const shown = [...usual, ...chosen.filter((name) => !usual.includes(name))];
  const others = all.filter((scheme) => !shown.includes(scheme.name));
  return (
    <fieldset>
      <legend>Schemes</legend>
      {shown.map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={(event) =>
              choose(
                shown.filter((candidate) =>
                  candidate === name ? event.target.checked : chosen.includes(candidate),
                ),
              )
            }
          />{" "}
          {name}
        </label>
      ))}
      {others.length > 0 && (
        <select
          aria-label="Compare another scheme, too"
          value=""
          onChange={(event) => choose([...chosen, event.target.value])}
        >
          <option value="">and another …</option>
          {others.map((other) => (
            <option key={other.name} value={other.name}>
              {other.name}: {other.title}
            </option>
          ))}
        </select>
      )}
    </fieldset>
  );
}
