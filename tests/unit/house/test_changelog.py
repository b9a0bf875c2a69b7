"""CHANGELOG.md has the form of Keep a Changelog."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

TEXT: Final = (Path(__file__).resolve().parents[3] / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS: Final = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
LONGEST: Final = 140


def versions() -> list[str]:
    return re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]


def test_every_version_has_a_date_and_each_kind_of_change_at_most_once() -> None:
    assert versions()
    for version in versions():
        assert re.match(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version)
        kinds = re.findall(r"^### (.*)$", version, re.MULTILINE)
        assert set(kinds) <= set(KINDS)
        assert len(set(kinds)) == len(kinds)


def test_entries_stand_once_and_in_lines_that_fit() -> None:
    entries = re.findall(r"^- .*(?:\n  .*)*", TEXT, re.MULTILINE)
    assert len(set(entries)) == len(entries) > 50
    starts = [entry[:60] for entry in entries]
    assert not {start for start in starts if starts.count(start) > 1}
    assert not [line for line in TEXT.splitlines() if len(line) > LONGEST]


def test_nothing_but_entries_stands_below_a_kind() -> None:
    for version in versions():
        for section in re.split(r"^### .*\n", version, flags=re.MULTILINE)[1:]:
            assert not [line for line in section.splitlines() if line and not line.startswith(("- ", "  "))]
