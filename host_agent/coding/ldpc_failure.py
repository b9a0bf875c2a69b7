"""Measures how often an LDPC-staircase unit cannot be decoded though no more packets are missing than it has repairs.

There is no closed form for so small graphs: the table that `native/agent/src/coding/ldpc_failure.rs` reads holds, for
grid values of k and r, the failure probability of peeling and elimination for x = 1 .. r packets missing out of k + r,
over random seeds and random patterns. This makes it anew::

    python -m host_agent.coding.ldpc_failure > native/agent/src/coding/ldpc_failure.txt
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from host_agent.coding.native import ldpc_rows

GRID_K: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
GRID_R: Final = tuple(range(1, 25))
GRAPHS: Final = 600
PATTERNS: Final = 6


def measure(k: int, r: int, *, graphs: int, patterns: int, source: random.Random) -> list[float]:
    """Return the failure probabilities for 1 .. r missing by trial: so many graphs, so many loss patterns on
    each.
    """
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
    """Return for every source the repairs it enters, as bits: rows of the staircase add up."""
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
    """Measure the table anew and print it."""
    print(
        f"# LDPC-staircase, N1 = 3: failures of 1000 of peeling and elimination; {GRAPHS} graphs x {PATTERNS}."
    )
    print("# k r, then one figure for each number 1 .. r of packets missing out of k + r")
    for k in GRID_K:
        for r in GRID_R:
            failures = measure(k, r, graphs=GRAPHS, patterns=PATTERNS, source=random.Random(k << 8 | r))
            print(k, r, *(round(1000 * failure) for failure in failures), flush=True)


if __name__ == "__main__":
    main()
