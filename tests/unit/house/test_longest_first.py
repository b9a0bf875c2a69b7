"""The order of the tests that several processes share."""

from __future__ import annotations

from pathlib import Path

from tests.longest_first import SECONDS, longest_first

TESTS = Path(__file__).resolve().parents[2]


def test_every_file_that_has_a_time_is_there_once() -> None:
    there = [path.name for room in ("lab", "e2e") for path in (TESTS / room).glob("test_*.py")]
    assert [name for name in SECONDS if there.count(name) != 1] == []


def test_files_come_by_their_times_and_their_tests_in_their_own_order() -> None:
    shorter, longer = sorted(SECONDS, key=SECONDS.__getitem__)[:: len(SECONDS) - 1]
    paths = [Path("lab", name) for name in ("a.py", shorter, "b.py", longer, "a.py", longer, shorter)]
    order = longest_first(paths)
    assert order == [3, 5, 1, 6, 0, 2, 4]
