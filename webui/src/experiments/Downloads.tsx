import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { BASE, get } from "../api/client";
import { useHas } from "../api/queries";
import type { FiguresView, FigureView } from "../api/schema";
import { Panel } from "../parts/Panel";
import type { Experiment } from "./types";

/** Figures as the reports have them, and files to take along. */
export function Downloads({ experiment }: { experiment: Experiment }) {
  const here = `/experiments/${experiment.id}`;
  const figures = useQuery({
    queryKey: ["experiments", experiment.id, "figures"],
    enabled: useHas("/experiments/{experiment}/figures") === true,
    retry: false,
    queryFn: ({ signal }) => get<FiguresView>(`${here}/figures`, signal),
  });
  return (
    <Panel title="Figures and files">
      <div className="made-figures">
        {figures.data?.figures.map((figure) => (
          <MadeFigure key={figure.name} figure={figure} here={here} />
        ))}
      </div>
      <p>
        <a href={`${BASE}${here}/flows.csv`} download={`${experiment.name}-flows.csv`}>
          All flows (CSV)
        </a>
        {" · "}
        <a href={`${BASE}${here}/results`} download={`${experiment.name}-results.json`}>
          Results (JSON)
        </a>
        {experiment.kind && experiment.kind !== "recorded" && (
          <>
            {" · "}
            <a href={`${BASE}${here}/results.csv`} download={`${experiment.name}-results.csv`}>
              Results (CSV)
            </a>
            {" · "}
            <a href={`${BASE}${here}/spec.yaml`} download={`${experiment.name}.yaml`}>
              Spec (YAML)
            </a>
          </>
        )}
      </p>
    </Panel>
  );
}

/** One figure; where it cannot be drawn from what was kept, that is said in its place. */
function MadeFigure({ figure, here }: { figure: FigureView; here: string }) {
  const [state, setState] = useState<"asked" | "there" | "missing">("asked");
  const words = figure.caption ?? figure.name;
  const file = (format: string): string => `${BASE}${here}/figures/${figure.name}.${format}`;
  if (state === "missing") return <p className="quiet">{words} It cannot be drawn from what was kept.</p>;
  return (
    <figure className="made-figure">
      <img
        src={file("svg")}
        alt={words}
        loading="lazy"
        className={state}
        onLoad={() => setState("there")}
        onError={() => setState("missing")}
      />
      <figcaption>
        {words}{" "}
        <a href={file("png")} download>
          PNG
        </a>{" "}
        <a href={file("svg")} download>
          SVG
        </a>
      </figcaption>
    </figure>
  );
}
