"""The order of the tests that several processes share."""

from __future__ import annotations

from pathlib import Path

from tests.longest_first import SECONDS, longest_first

TESTS = Path(__file__).resolve().parents[2]


def test_every_file_that_has_a_time_is_there_once() -> None:
    """Once among those with labs or else once among those without: each of the two is a run of its own."""

    def once(*rooms: str) -> set[str]:
        there = [path.name for room in rooms for path in (TESTS / room).rglob("test_*.py")]
        return {name for name in there if there.count(name) == 1}

    assert [name for name in SECONDS if name not in once("lab", "e2e") | once("unit", "fuzz")] == []


def test_files_come_by_their_times_and_their_tests_in_their_own_order() -> None:
    shorter, longer = sorted(SECONDS, key=SECONDS.__getitem__)[:: len(SECONDS) - 1]
    paths = [Path("lab", name) for name in ("a.py", shorter, "b.py", longer, "a.py", longer, shorter)]
    order = longest_first(paths)
    assert order == [3, 5, 1, 6, 0, 2, 4]
