import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { change, RefusedError } from "../api/client";
import { useScheme, useSchemes } from "../api/queries";
import type { AppliedScheme } from "../api/schema";
import { QueryResult } from "../parts/QueryResult";
import { Panel } from "../parts/Panel";
import { SchemeMark } from "../parts/SchemeMark";
import { duration } from "../parts/units";

/** Switch the scheme of the running fabric; connections live on. */
export function SchemeControls({ may }: { may: boolean }) {
  const scheme = useScheme();
  const schemes = useSchemes();
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<string | null>(null);
  const apply = useMutation({
    mutationFn: (name: string) => change<AppliedScheme>("PUT", "/scheme", { scheme: name }),
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["scheme"] });
      void queries.invalidateQueries({ queryKey: ["health"] });
    },
  });
  return (
    <Panel title="Scheme">
      <QueryResult query={scheme} what="scheme">
        {(now) => {
          const name = chosen ?? now.base;
          const shown = schemes.data?.schemes.find((candidate) => candidate.name === name);
          return (
            <>
              <p>
                In force: <SchemeMark name={now.scheme.name} />
                {Object.keys(now.overrides).length > 0 && (
                  <>
                    {" "}
                    with <code>{JSON.stringify(now.overrides)}</code>
                  </>
                )}
              </p>
              <form
                className="actions"
                onSubmit={(event) => {
                  event.preventDefault();
                  apply.mutate(name);
                }}
              >
                <label>
                  Scheme{" "}
                  <select value={name} onChange={(event) => setChosen(event.target.value)}>
                    {schemes.data?.schemes.map((scheme) => (
                      <option key={scheme.name} value={scheme.name}>
                        {scheme.name}: {scheme.title}
                      </option>
                    ))}
                  </select>
                </label>
                <button className="main" type="submit" disabled={!may || apply.isPending || !schemes.data}>
                  {apply.isPending ? "Switching…" : "Switch to it"}
                </button>
              </form>
              {shown && <p className="quiet">{String(shown["summary"] ?? "")}</p>}
              <p role="status">
                {apply.data &&
                  `${apply.data.base} is in force: all switches and agents confirmed within ${duration(apply.data.applied_ms / 1000)}.`}
              </p>
              {apply.error && <Late error={apply.error} />}
            </>
          );
        }}
      </QueryResult>
    </Panel>
  );
}

/** Who has not confirmed, where the controller says so. */
function Late({ error }: { error: Error }) {
  const late = error instanceof RefusedError ? error.problem["unconfirmed"] : null;
  return (
    <div role="alert">
      {error.message}
      {Array.isArray(late) && (
        <ul>
          {(late as { who: string; why: string }[]).map((party) => (
            <li key={party.who}>
              {party.who}: {party.why}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
