"""How buckets are laid out so that a `dp_hash` group sprays evenly over any number of ports.

Open vSwitch's dp_hash maps a packet's hash to one of 2**n >= max(16, buckets) slots, 256 at most, and shares the
slots out among the buckets by Webster's method, first buckets first where weights are equal. So ports are repeated
floor(256 / N) times, interleaved: then of 256 slots every port gets floor(256 / N) and the first few get one more.
For 20 ports that is 13 and 12, and 12 is 6 % too few. Where one group is not even enough, the entropy values are
split by their lowest bits into 2, 4 or 8 parts with a group each, in which different ports come first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

SLOTS: Final = 256
MAX_UNEVENNESS: Final = 0.016
"""Most that a port's share of a spray may differ from 1/N, as a share of it."""
MAX_PARTS: Final = 8


def spray_parts(ports: int) -> int:
    """Return into how many parts (a power of two) the entropy values are split for *ports* ports."""
    parts = 1
    while parts < MAX_PARTS and _unevenness(ports, parts) > MAX_UNEVENNESS:
        parts *= 2
    return parts


def _unevenness(ports: int, parts: int) -> float:
    if ports > SLOTS:
        return 0.0  # Open vSwitch does not use slots then, but hashes every packet over the buckets.
    slots, over = divmod(SLOTS * parts, ports)
    fair = SLOTS * parts / ports
    return max(fair - slots, slots + 1 - fair if over else 0.0) / fair


@lru_cache(maxsize=1 << 12)
def spray_order(ports: tuple[int, ...], part: int) -> tuple[int, ...]:
    """Return the ports of the buckets of one part's group, in order."""
    count = len(ports)
    extra = SLOTS % count if count <= SLOTS else 0
    start = part * extra % count
    return (ports[start:] + ports[:start]) * max(SLOTS // count, 1)
