"""Memory that was freed goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

from controller.process.freed_memory import STEADY_BYTES, WORTH_BYTES, FreedMemory

MIB = 1 << 20


def looks(*resident: int, left: int) -> list[bool]:
    """Return whether each look gave memory back; left: bytes that are resident then."""
    sizes = iter(resident)
    given = False

    def give_back() -> None:
        nonlocal given
        given = True

    def size() -> int:
        nonlocal given
        if given:
            given = False
            return left
        return next(sizes)

    memory = FreedMemory(size, give_back)
    return [memory.look() for _ in resident[1:]]


def test_memory_is_given_back_once_its_use_is_steady() -> None:
    start, much = 100 * MIB, 100 * MIB + WORTH_BYTES
    assert looks(start, much, much, much, left=start) == [False, True, False]


def test_what_grows_is_in_use() -> None:
    sizes = [100 * MIB + step * 2 * STEADY_BYTES for step in range(40)]
    assert not any(looks(*sizes, left=0))


def test_what_stays_after_it_was_given_back_is_in_use() -> None:
    much = 100 * MIB + 2 * WORTH_BYTES
    assert looks(100 * MIB, much, *[much] * 10, left=much) == [False, True, *[False] * 9]


def test_little_is_left_where_it_is() -> None:
    assert not any(looks(100 * MIB, *[100 * MIB + WORTH_BYTES - 1] * 5, left=0))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_holes_between_small_pieces_are_given_back() -> None:
    """Pieces too large for Python's own allocator, one of 64 of which stays: no arena has an end that is free."""
    program = f"""
from controller.process.freed_memory import FreedMemory, resident_bytes
memory = FreedMemory()
pieces = [bytes(2000) for _ in range(100_000)]
kept = pieces[::64]
del pieces
before = resident_bytes()
given = memory.look(), memory.look()
assert given == (False, True), given
assert before - resident_bytes() > {WORTH_BYTES}, (before, resident_bytes())
"""
    subprocess.run([sys.executable, "-c", program], check=True)
