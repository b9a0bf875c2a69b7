import { Button, Code, Group, List, NativeSelect, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { change, RefusedError } from "../api/client";
import { askAgain } from "../api/known";
import { useScheme, useSchemes } from "../api/queries";
import type { AppliedScheme, SchemeView } from "../api/schema";
import { Link } from "../app/Link";
import { focusHeading } from "../parts/focus";
import { QueryResult } from "../parts/QueryResult";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { SchemeMark } from "../parts/SchemeMark";
import { duration } from "../parts/units";
import { schemeOption } from "../understand/composition";

/** Switch the scheme of the running fabric; connections live on. */
export function SchemeControls({ may }: { may: boolean }) {
  const scheme = useScheme();
  const schemes = useSchemes();
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<string | null>(null);
  const apply = useMutation({
    mutationFn: (name: string) => change<AppliedScheme>("PUT", "/scheme", { scheme: name }),
    onSettled: () => {
      void askAgain(queries, { queryKey: ["scheme"] });
      void askAgain(queries, { queryKey: ["health"] });
    },
  });
  return (
    <Panel title="Scheme">
      <QueryResult query={scheme} subject="scheme">
        {(now) => {
          const name = chosen ?? now.base;
          const shown = schemes.data?.schemes.find((candidate) => candidate.name === name);
          return (
            <>
              <Text>
                In force: <SchemeMark name={now.scheme.name} />
                {Object.keys(now.overrides).length > 0 && (
                  <>
                    {" "}
                    with <Code>{JSON.stringify(now.overrides)}</Code>
                  </>
                )}
              </Text>
              <form
                onSubmit={(event) => {
                  event.preventDefault();
                  focusHeading(event.currentTarget);
                  apply.mutate(name);
                }}
              >
                <Group align="end" gap="xs" my={6}>
                  <NativeSelect
                    label="Scheme"
                    flex={1}
                    value={name}
                    onChange={(event) => setChosen(event.target.value)}
                    data={[
                      ...(!schemes.data || shown ? [] : [{ value: name, label: `${name}: from a file` }]),
                      ...(schemes.data?.schemes ?? []).map((scheme) => schemeOption(scheme, true)),
                    ]}
                  />
                  <Button variant="filled" type="submit" disabled={!may || apply.isPending || !shown}>
                    {apply.isPending ? "Switching…" : "Switch to it"}
                  </Button>
                </Group>
              </form>
              {schemes.isError && (
                <Text role="alert" c="error">
                  There is no list of schemes: {schemes.error.message}
                </Text>
              )}
              {shown && (
                <Quiet>
                  {String(shown["summary"] ?? "")} <Link href={`/understand/${name}`}>How it works</Link>
                </Quiet>
              )}
              <Text role="status">{inForce(apply.data, now)}</Text>
              {apply.error && <Late error={apply.error} />}
            </>
          );
        }}
      </QueryResult>
    </Panel>
  );
}

/**
 * Return the confirmation that what was *applied* here is in force, while it is: another client may have switched
 * since. *now*: the scheme by the newest answer.
 */
export function inForce(
  applied: Pick<AppliedScheme, "base" | "version" | "applied_ms"> | undefined,
  now: Pick<SchemeView, "version">,
): string {
  if (applied?.version !== now.version) return "";
  const within = duration(applied.applied_ms / 1000);
  return `${applied.base} is in force: all switches and agents confirmed within ${within}.`;
}

/** Show which agents have not confirmed, where the controller names them. */
function Late({ error }: { error: Error }) {
  const late = error instanceof RefusedError ? error.problem["unconfirmed"] : null;
  return (
    <Text component="div" role="alert" c="error">
      {error.message}
      {Array.isArray(late) && (
        <List size="sm">
          {(late as { who: string; why: string }[]).map((party) => (
            <List.Item key={party.who}>
              {party.who}: {party.why}
            </List.Item>
          ))}
        </List>
      )}
    </Text>
  );
}
