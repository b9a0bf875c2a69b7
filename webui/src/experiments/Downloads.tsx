import { useQuery } from "@tanstack/react-query";
import { BASE, get } from "../api/client";
import { useHas } from "../api/queries";
import { Panel } from "../parts/Panel";
import type { Experiment } from "./types";

interface Figure {
  name: string;
  caption?: string;
}

/** Figures as the reports have them, and files to take along. */
export function Downloads({ experiment }: { experiment: Experiment }) {
  const here = `/experiments/${experiment.id}`;
  const figures = useQuery({
    queryKey: ["experiments", experiment.id, "figures"],
    enabled: useHas("/experiments/{experiment}/figures") === true,
    retry: false,
    queryFn: ({ signal }) => get<{ figures: Figure[] }>(`${here}/figures`, signal),
  });
  return (
    <Panel title="Figures and files">
      {figures.data?.figures.map((figure) => (
        <figure key={figure.name} className="made-figure">
          <img
            src={`${BASE}${here}/figures/${figure.name}.svg`}
            alt={figure.caption ?? figure.name}
            loading="lazy"
          />
          <figcaption>
            {figure.caption ?? figure.name}{" "}
            <a href={`${BASE}${here}/figures/${figure.name}.png`} download>
              PNG
            </a>{" "}
            <a href={`${BASE}${here}/figures/${figure.name}.svg`} download>
              SVG
            </a>
          </figcaption>
        </figure>
      ))}
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
      <p className="quiet">
        The address of this page can be shared: it shows the same to whoever may read here.
      </p>
    </Panel>
  );
}
