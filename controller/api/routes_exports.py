"""Routes for what experiments leave behind in other forms: Parquet, figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from flask import Response

from controller.api import answers_experiments
from controller.api.describing import Description, Query
from controller.api.exporting import parquet_file, picture, pieces
from controller.api.problems import ProblemError
from controller.api.request_values import number
from controller.api.routing import get
from controller.store.experiments import ExperimentStore
from figures.draw import FIELDS, FIGURES, FORMATS
from plain.reading import did_you_mean

PARQUET: Final = "application/vnd.apache.parquet"
MEDIA: Final = {"svg": "image/svg+xml", "png": "image/png"}
OF_SWEEP: Final = {"sweep": "Each measure over the first axis, a line for each scheme."}
"""Figures of a submitted sweep, which its engine draws."""
FIGURE_PROBLEMS: Final = (404, 409)
"""409: of a submitted sweep that has no results yet, of which the engine draws the figure."""


class ExportRoutes:
    """One experiment as Parquet and as figures."""

    def __init__(self, store: ExperimentStore) -> None:
        self._store: Final = store

    @get(
        "/flows.parquet",
        Description(
            "All flow records as Parquet.",
            bytes,
            query=(Query("run", "Only what belongs to the run of this number."),),
            problems=(404, 406),
            media=PARQUET,
        ),
    )
    def flows_parquet(self, experiment: int) -> Response:
        run = number("run", None)
        self._store.flows(experiment, run, 0, 1)  # a wrong number is refused at once
        rows = (
            {**flow, "paths": json.dumps(flow["paths"])} for flow in self._store.all_flows(experiment, run)
        )
        return Response(pieces(parquet_file(rows)), mimetype=PARQUET)

    @get(
        "/figures",
        Description(
            "Figures that can be had of an experiment.", answers_experiments.FiguresView, problems=(404,)
        ),
    )
    def figures(self, experiment: int) -> answers_experiments.FiguresView:
        stored = self._store.experiment(experiment)
        if stored["kind"] == "sweep":
            there = OF_SWEEP if stored["summary"] else {}
        else:
            changes = any(True for _ in self._store.modes(experiment, None))
            there = {name: FIGURES[name] for name in FIGURES if changes or name != "modes"}
            there = there if stored["runs"] else {}
        return {
            "figures": [
                {"name": name, "caption": caption, "formats": list(FORMATS)}
                for name, caption in there.items()
            ]
        }

    def _drawn(self, experiment: int, name: str, kind: str) -> Response:
        if name not in FIGURES:
            raise ProblemError(404, f"there is no figure {name!r}{did_you_mean(name, FIGURES)}")
        if self._store.experiment(experiment, runs=False)["kind"] == "sweep":
            raise ProblemError(404, f"experiment {experiment} is a sweep: its points have figure {name!r}")
        runs = self._store.experiment(experiment)["runs"]
        document = _document(runs, self._store.modes(experiment, None))
        records = () if name == "modes" else _records(self._store.all_flows(experiment, None), runs)
        image = picture(name, kind, document, records)
        if not image:
            raise ProblemError(404, f"experiment {experiment} has not enough for figure {name!r}")
        return Response(image, mimetype=MEDIA[kind])

    @get(
        "/figures/<name>.svg",
        Description("A figure, as SVG.", str, problems=FIGURE_PROBLEMS, media=MEDIA["svg"]),
    )
    def svg(self, experiment: int, name: str) -> Response:
        return self._drawn(experiment, name, "svg")

    @get(
        "/figures/<name>.png",
        Description("A figure, as PNG.", bytes, problems=FIGURE_PROBLEMS, media=MEDIA["png"]),
    )
    def png(self, experiment: int, name: str) -> Response:
        return self._drawn(experiment, name, "png")


def _document(runs: Sequence[Mapping[str, Any]], changes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return as much of a result's document as figures need. *changes*: of modes; those of other runs are left out."""
    modes: dict[int, list[Mapping[str, Any]]] = {}
    for change in changes:
        modes.setdefault(change["run"], []).append(change)
    return {
        "schemes": {run["label"]: {"scheme": run["scheme"]} for run in runs},
        "runs": [
            {
                "scheme": run["label"],
                "repeat": run["repeat"],
                "duration_s": run["finished_at"] - run["started_at"],
                "modes": modes.get(run["id"], []),
            }
            for run in runs
        ],
    }


def _records(
    flows: Iterable[Mapping[str, Any]], runs: Iterable[Mapping[str, Any]]
) -> Iterator[Sequence[str]]:
    """Yield values of `figures.draw.FIELDS`, all as text, of flows of *runs*: later ones are no part of the figure.

    A run may be kept between the reading of the runs and that of its flows, which are read page by page.
    """
    labels = {run["id"]: run["label"] for run in runs}
    for flow in flows:
        if (label := labels.get(flow["run_id"])) is None:
            continue
        words = " ".join(f"{stamp}:{count}" for stamp, count in flow["paths"].items())
        record = {**flow, "scheme": label, "paths": words}
        yield ["" if record[field] is None else str(record[field]) for field in FIELDS]
