import { NavLink, Paper, TextInput } from "@mantine/core";
import { useState } from "react";
import { useFabric, useScheme, useSchemes } from "../api/queries";
import { navigate, usePath } from "../app/location";
import { Notice } from "../parts/Notice";
import { QueryResult } from "../parts/QueryResult";
import { Quiet } from "../parts/Quiet";
import { SchemeMark } from "../parts/SchemeMark";
import { SchemeView } from "./SchemeView";
import styles from "./understand.module.css";

/**
 * Show the scheme in force (`/understand`) or the scheme that the address names (`/understand/caps`). The list beside
 * it has all others.
 */
export function UnderstandPage() {
  const [, part] = usePath();
  const schemes = useSchemes();
  const now = useScheme();
  const first = now.data?.base;
  const inForce = useFabric().data?.switches.length === 0 ? undefined : first;
  const [words, setWords] = useState("");
  return (
    <QueryResult query={schemes} subject="list of schemes">
      {({ schemes: all }) => {
        if (part === undefined && now.isPending) return <Quiet>Asking for the scheme in force…</Quiet>;
        const wanted = part ?? first;
        const found = all.find((scheme) => scheme.name === wanted);
        const chosen = part === undefined ? (found ?? all[0]) : found;
        const wide = words.toLowerCase();
        const shown = all.filter((scheme) => `${scheme.name} ${scheme.title}`.toLowerCase().includes(wide));
        return (
          <div className={styles["page"]}>
            <Paper component="nav" withBorder bg="var(--card)" p="xs" aria-label="Schemes">
              <TextInput
                type="search"
                aria-label="Find a scheme"
                placeholder="Find a scheme"
                mb={6}
                value={words}
                onChange={(event) => setWords(event.target.value)}
              />
              {shown.map((scheme) => (
                <NavLink
                  key={scheme.name}
                  href={`/understand/${scheme.name}`}
                  label={<SchemeMark name={scheme.name} />}
                  description={scheme.name === inForce ? `${scheme.title}: in force` : scheme.title}
                  active={scheme === chosen}
                  aria-current={scheme === chosen ? "page" : undefined}
                  py={4}
                  onClick={(event) => {
                    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                    event.preventDefault();
                    navigate(`/understand/${scheme.name}`);
                  }}
                />
              ))}
            </Paper>
            {chosen ? (
              <SchemeView key={chosen.name} scheme={chosen} />
            ) : (
              <Notice title={`There is no scheme ${part ?? ""}`}>Those of this controller are listed.</Notice>
            )}
          </div>
        );
      }}
    </QueryResult>
  );
}
