"""Rounds of an experiment that repeats for people who watch: the newest stay, and what others ran stays."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from experiments.run.showing import remove_older


def rounds(directory: Path, number: int) -> None:
    """Make so many results, each a second newer than the one before it."""
    for index in range(number):
        made = directory / f"demo-{index}"
        made.mkdir()
        (made / "result.json").write_text("{}")
        os.utime(made, (index, index))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_newest_results_stay_and_what_is_none_stays(tmp_path: Path) -> None:
    rounds(tmp_path, 5)
    (tmp_path / "under-way").mkdir()
    remove_older(tmp_path, 2)
    assert names(tmp_path) == ["demo-3", "demo-4", "under-way"]


def test_the_round_that_has_just_ended_stays_where_the_clock_was_set_back(tmp_path: Path) -> None:
    rounds(tmp_path, 4)
    remove_older(tmp_path, 2, tmp_path / "demo-0")
    assert names(tmp_path) == ["demo-0", "demo-3"]


def test_rounds_that_another_show_removes_meanwhile_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = shutil.rmtree

    def twice(path: Path) -> None:
        remove(path)
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", twice)
    rounds(tmp_path, 3)
    remove_older(tmp_path, 1)
    assert names(tmp_path) == ["demo-2"]
