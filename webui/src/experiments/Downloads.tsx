import { Anchor, Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { BASE, get } from "../api/client";
import { useHas } from "../api/queries";
import type { FiguresView, FigureView } from "../api/schema";
import { focusHeading } from "../parts/focus";
import { Grid } from "../parts/Grid";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import styles from "./experiments.module.css";
import { sweepParts } from "./sweep";
import { type Experiment, OVER, type SweepDocument } from "./types";

/** Show figures as the reports have them, and files to download. */
export function Downloads({ experiment }: { experiment: Experiment }) {
  const here = `/experiments/${experiment.id}`;
  const parts = sweepParts((experiment.summary ?? {}) as SweepDocument).length;
  const over = OVER.includes(experiment.state);
  // While it runs, each run would make another figure of the same address; a sweep is drawn on the page itself.
  const shown = over && parts === 0;
  const figures = useQuery({
    queryKey: ["experiments", experiment.id, "figures"],
    enabled: useHas("/experiments/{experiment}/figures") === true && shown,
    retry: false,
    queryFn: ({ signal }) => get<FiguresView>(`${here}/figures`, signal),
  });
  const file = (path: string, name: string, words: string) => (
    <Anchor size="sm" href={`${BASE}${here}/${path}`} download={name}>
      {words}
    </Anchor>
  );
  return (
    <Panel title="Figures and files">
      {!over && <Quiet>Figures are drawn once it is over.</Quiet>}
      {shown && figures.isError && <Quiet>No figures: {figures.error.message}</Quiet>}
      <Grid least={600}>
        {shown &&
          figures.data?.figures.map((figure) => <MadeFigure key={figure.name} figure={figure} here={here} />)}
      </Grid>
      <Group mt="xs">
        {Array.from({ length: parts }, (_, part) =>
          (["svg", "png"] as const).map((format) => (
            <Fragment key={`${part} ${format}`}>
              {file(
                `figures/sweep.${format}?part=${part + 1}`,
                `${experiment.name}-sweep${parts > 1 ? `-${part + 1}` : ""}.${format}`,
                `Figure for print${parts > 1 ? `, part ${part + 1}` : ""} (${format.toUpperCase()})`,
              )}
            </Fragment>
          )),
        )}
        {file("flows.csv", `${experiment.name}-flows.csv`, "All flows (CSV)")}
        {file("results", `${experiment.name}-results.json`, "Results (JSON)")}
        {experiment.kind && experiment.kind !== "recorded" && (
          <>
            {file("results.csv", `${experiment.name}-results.csv`, "Results (CSV)")}
            {file("spec.yaml", `${experiment.name}.yaml`, "Spec (YAML)")}
          </>
        )}
      </Group>
    </Panel>
  );
}

/** Show a figure, or below those that are there that it was not drawn. */
function MadeFigure({ figure, here }: { figure: FigureView; here: string }) {
  const [state, setState] = useState<"asked" | "there" | "missing">("asked");
  const words = figure.caption ?? figure.name;
  const file = (format: string): string => `${BASE}${here}/figures/${figure.name}.${format}`;
  if (state === "missing") return <NotDrawn words={words} again={() => setState("asked")} />;
  return (
    <figure className={styles["made"]}>
      <img
        src={file("svg")}
        alt={words}
        data-state={state}
        onLoad={() => setState("there")}
        onError={() => setState("missing")}
      />
      {state === "asked" && <Quiet>Drawing…</Quiet>}
      <figcaption>
        {words}{" "}
        <Anchor inherit href={file("png")} download>
          PNG
        </Anchor>{" "}
        <Anchor inherit href={file("svg")} download>
          SVG
        </Anchor>
      </figcaption>
    </figure>
  );
}

/** Say that a figure was not drawn, and offer to have it drawn *again*: some are refused while many are being drawn. */
export function NotDrawn({ words, again }: { words: string; again: () => void }) {
  return (
    <div className={styles["missing"]}>
      <Quiet>
        {words} It was not drawn: too little was kept for it, or too many figures were being drawn.{" "}
        <Button
          size="compact-xs"
          onClick={(event) => {
            focusHeading(event.currentTarget);
            again();
          }}
        >
          Try again
        </Button>
      </Quiet>
    </div>
  );
}
