"""How often an LDPC-staircase unit cannot be decoded though no more packets are missing than it has repairs.

There is no closed form for so small graphs, so the figures are measured: `ldpc_failure.txt` holds, for grid values of k
and r, the failure probability of peeling and elimination for x = 1 .. r packets missing out of k + r, over random
seeds and random patterns. ``python -m host_agent.coding.ldpc_failure`` prints the file anew.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

GRID_K: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
GRID_R: Final = tuple(range(1, 25))
GRAPHS: Final = 600
PATTERNS: Final = 6
_FILE: Final = Path(__file__).parents[2] / "native/agent/src/coding/ldpc_failure.txt"


def ldpc_failure(k: int, r: int, missing: int) -> float:
    """P(not all sources are rebuilt | *missing* of the k + r packets do not come).

    Between grid values the next larger k counts; above the grid's largest r, its largest r with the same surplus
    of repairs.
    """
    if missing == 0:
        return 0.0
    if missing > r:
        return 1.0
    top = GRID_R[-1]
    if r > top:
        missing, r = missing - (r - top), top
        if missing <= 0:
            return 0.0
    return _table()[GRID_K[min(bisect_left(GRID_K, k), len(GRID_K) - 1)], r][missing - 1]


@cache
def _table() -> dict[tuple[int, int], tuple[float, ...]]:
    table = {}
    for line in _FILE.read_text().splitlines():
        if not line.startswith("#"):
            k, r, *failures = line.split()
            table[int(k), int(r)] = tuple(int(failure) / 1000 for failure in failures)
    return table


def measure(k: int, r: int, graphs: int, patterns: int, source: random.Random) -> list[float]:
    """The failure probabilities for 1 .. r missing by trial: so many graphs, so many loss patterns on each."""
    failures = [0] * r
    for _ in range(graphs):
        columns = _generator_columns(k, r, source.getrandbits(32))
        for missing in range(1, r + 1):
            for _ in range(patterns):
                lost = source.sample(range(k + r), missing)
                received = (1 << r) - 1
                for symbol in lost:
                    if symbol >= k:
                        received &= ~(1 << (symbol - k))
                vectors = [columns[symbol] & received for symbol in lost if symbol < k]
                failures[missing - 1] += not _independent(vectors)
    return [failure / (graphs * patterns) for failure in failures]


def _generator_columns(k: int, r: int, seed: int) -> list[int]:
    """For every source the repairs it enters, as bits: rows of the staircase add up."""
    from host_agent.coding.native import ldpc_rows  # only to measure anew: the table needs no kernels

    columns = [0] * k
    for j, members in enumerate(ldpc_rows(k, r, seed)):
        for source in members:
            columns[source] ^= (1 << r) - (1 << j)  # into repair j and all that follow
    return columns


def _independent(vectors: Sequence[int]) -> bool:
    basis: dict[int, int] = {}
    for vector in vectors:
        while vector:
            top = vector.bit_length()
            if top not in basis:
                basis[top] = vector
                break
            vector ^= basis[top]
        if not vector:
            return False
    return True


def main() -> None:
    print(
        f"# LDPC-staircase, N1 = 3: failures of 1000 of peeling and elimination; {GRAPHS} graphs x {PATTERNS}."
    )
    print("# k r, then one figure for each number 1 .. r of packets missing out of k + r")
    for k in GRID_K:
        for r in GRID_R:
            failures = measure(k, r, GRAPHS, PATTERNS, random.Random(k << 8 | r))
            print(k, r, *(round(1000 * failure) for failure in failures), flush=True)


if __name__ == "__main__":
    main()
