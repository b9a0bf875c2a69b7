"""What other programs take of the processors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import eventually
from topologies.other_programs import Busy, Spent, busy, busy_now, parse

names = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=15)


@given(names, st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_any_name_is_read(name: str, user: int, system: int) -> None:
    stat = f"7 ({name}) S 1 7 7 0 -1 4194560 1 2 3 4 {user} {system} 0 0 20 0 1 0 5 6 7"
    assert parse(stat, 100) == Spent(name, (user + system) / 100)


def test_threads_of_the_kernel_are_no_programs() -> None:
    """`kworker/1:2-events` is `kworker/1:2-mm_percpu_wq` a moment later: all that it ever took would count."""
    assert (
        parse("25 (kworker/1:2-events) I 2 0 0 0 -1 69238880 0 0 0 0 0 1234 0 0 20 0 1 0 9 0 0", 100) is None
    )


def test_our_own_line_is_read() -> None:
    own = parse(Path("/proc/self/stat").read_text(), os.sysconf("SC_CLK_TCK"))
    assert own is not None
    assert own.name == Path("/proc/self/comm").read_text().rstrip("\n")
    assert own.cpu_s > 0


def test_programs_are_added_up_by_name() -> None:
    before = {1: Spent("make", 5.0), 2: Spent("cc1", 3.0), 3: Spent("old", 9.0)}
    after = {1: Spent("make", 5.2), 2: Spent("cc1", 4.0), 4: Spent("cc1", 0.8), 3: Spent("new", 0.1)}
    found = busy(before, after, 2.0)
    assert found is not None
    assert found.program == "cc1"
    assert found.cores == pytest.approx((0.2 + 1.0 + 0.8 + 0.1) / 2)


def test_a_system_at_rest_is_not_mentioned() -> None:
    assert busy({}, {}, 1.0) is None
    assert busy({1: Spent("init", 1.0)}, {1: Spent("init", 1.1)}, 1.0) is None


def test_a_busy_loop_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
        try:
            found = eventually(lambda: busy_now(0.2))
        finally:
            loop.kill()
    assert isinstance(found, Busy)
