"""A sweep's result out of those of its points, and results as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.results.sweep_results import point_table, sweep_document
from experiments.spec.spec import spec_from_dict


def sweep_summary(
    spec: Mapping[str, Any], points: Sequence[tuple[list[Any], Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the document of a sweep; points: what the axes show, and the result document of each.

    Raises:
        KeyError, ValueError, TypeError: a document is not one.
    """
    width = len(str(len(points)))
    entries = [
        (tuple(ticks), Path(f"point-{index:0{width}d}"), document)
        for index, (ticks, document) in enumerate(points, start=1)
    ]
    return sweep_document(spec_from_dict(spec), entries)


def result_table(summary: Mapping[str, Any]) -> str:
    """Return CSV of a finished experiment or sweep: a row a scheme and point. Times in ms, rates in Mbit/s."""
    if summary.get("kind") == "sweep":
        return point_table(summary)
    return point_table({"sweep": [], "points": [{"at": [], "schemes": summary["schemes"]}]})
