"""Rounds of an experiment that repeats for people who watch: the newest stay, and what others ran stays."""

from __future__ import annotations

import os
from pathlib import Path

from experiments.run.showing import remove_older


def test_the_newest_results_stay_and_what_is_none_stays(tmp_path: Path) -> None:
    for number in range(5):
        directory = tmp_path / f"demo-{number}"
        directory.mkdir()
        (directory / "result.json").write_text("{}")
        os.utime(directory, (number, number))
    (tmp_path / "under-way").mkdir()
    remove_older(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo-3", "demo-4", "under-way"]
