"""Figures of another simulator on the same trace, to stand beside ours.

A reference file is CSV with the columns spines, transport, paths, flows, figure, value: figures are named as
`simulation.summary` names them, in its units.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from simulation.fabrics import SettingsError
from simulation.settings import Settings

COLUMNS: Final = ("spines", "transport", "paths", "flows", "figure", "value")


def read_reference(path: Path, settings: Settings, flows: int) -> dict[str, float]:
    """Return the figures for a run of *settings* with so many flows, by name; none if the file has no such run.

    Raises:
        OSError: the file cannot be read.
        SettingsError: the file is no reference file.
    """
    transport = settings.transport.to_native()["kind"]
    wanted = (str(settings.fabric.spines), transport, settings.paths, str(flows))
    figures: dict[str, float] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if tuple(next(rows, ())) != COLUMNS:
            raise SettingsError(f"{path}: a reference file's columns are {','.join(COLUMNS)}")
        for row in rows:
            try:
                *run, figure, value = row
                number = float(value)
            except ValueError:
                raise SettingsError(f"{path}, line {rows.line_num}: {','.join(row)!r} is no figure") from None
            if tuple(run) == wanted:
                figures[figure] = number
    return figures
