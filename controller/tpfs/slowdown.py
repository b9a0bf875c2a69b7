"""How long flows of several types take in strict-priority queues, by a queueing model: what delta is chosen by.

**The model.** Flows arrive at a link with load rho at random (M/G/1) with all their bytes; queue l is served when those
above are empty, first come, first served. A flow of type t sends its bytes between b_(t,l-1) and b_(t,l) from queue l.
What queues 1 .. l carry of it is m = min(X, b_(t,l)), and rho_l = rho E[m] / E[X]. A flow that ends in queue l finds

    B_l = rho / E[X] * E[m min(m, w)] / (2 (1 - rho_l))          bytes before it (Pollaczek and Khinchine's formula),

and the queues above take their share of the link while it waits and is served, so it is done after (in bytes of link)

    T = (B_l + min(x, w)) / (1 - rho_(l-1)) + max(x - w, 0) / (1 - rho_l).

For w = infinity this is Kleinrock's multi-level queue with first come, first served in each level (Queueing Systems,
vol. 2, 1976, section 4.7), but for flows' parts that come to a lower queue together. TCP keeps at most a window w in a
queue; beyond it the flows of one queue share what it gets (w = 0: processor sharing). The mean *slowdown* is that of
T / (x + packet): a flow's time over that which it would take alone.

PIAS's own model charges one mean stay for each queue that a flow comes to. It does
not see what one large flow does to the small ones behind it, and preferred thresholds that made short flows three
times as slow in a simulation of queues, packet by packet. The mean slowdown orders thresholds as that simulation does
(docs/tpfs.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
PACKET_BYTES: Final = 1500
WINDOW_BYTES: Final = 90_000
"""w: 64 packets. The order of thresholds is the same with a third of it."""


class SlowdownSums:
    """Of flows of one type, what the model needs of them in O(log n). sizes in bytes, growing; weights: shapes (n,)."""

    def __init__(self, sizes: Floats, weights: Floats, window: float = WINDOW_BYTES) -> None:
        self._sizes, self._window = sizes, window
        first, beyond = np.minimum(sizes, window), np.maximum(sizes - window, 0.0)
        alone = sizes + PACKET_BYTES
        self._flows = _sums(weights)
        self._bytes = _sums(weights * sizes)
        self._chunks = _sums(weights * sizes * first)
        self._one = _sums(weights / alone)
        self._first = _sums(weights * first / alone)
        self._beyond = _sums(weights * beyond / alone)
        self.flows = float(self._flows[-1])
        self.bytes = float(self._bytes[-1])

    def within(self, size: float) -> float:
        """Return the sum of m = min(X, size)."""
        index = self._index(size)
        rest = 0.0 if np.isinf(size) else (self.flows - float(self._flows[index])) * size
        return float(self._bytes[index]) + rest

    def chunks(self, size: float) -> float:
        """Return the sum of m min(m, w)."""
        index = self._index(size)
        rest = (
            0.0
            if np.isinf(size)
            else (self.flows - float(self._flows[index])) * size * min(size, self._window)
        )
        return float(self._chunks[index]) + rest

    def slowdown(self, above: float, upto: float, waits: float, *, free_above: float, free: float) -> float:
        """Return the sum of T / (x + packet) of flows with above < x <= upto. waits: B_l; free_above and free: 1 -
        rho_(l-1) and 1 - rho_l."""
        low, high = self._index(above), self._index(upto)
        single, first, beyond = (part[high] - part[low] for part in (self._one, self._first, self._beyond))
        return float((waits * single + first) / free_above + beyond / free)

    def _index(self, size: float) -> int:
        return int(np.searchsorted(self._sizes, size, side="right"))


def mean_slowdown(
    types: Sequence[SlowdownSums],
    thresholds: Sequence[Sequence[float]],
    load: float,
    *,
    others: SlowdownSums | None = None,
    default: Sequence[float] = (),
) -> float:
    """Return mean slowdown of the flows of *types*; 0 where there are none.

    thresholds: of each type, bytes, not falling; load: of the link, below 1. others: flows of no type, which are in the
    way under *default* thresholds, but do not count (every second flow is an answer of a byte, on its way back).
    """
    flows, all_types = sum(sizes.flows for sizes in types), list(types)
    bounds = [(-np.inf, *limits, np.inf) for limits in thresholds]
    if others is not None:
        all_types, bounds = [*all_types, others], [*bounds, (-np.inf, *default, np.inf)]
    total = sum(sizes.bytes for sizes in all_types)
    if not flows or not total:
        return 0.0
    slowdown, free_above = 0.0, 1.0
    for queue in range(len(bounds[0]) - 1):
        pairs = [(sizes, bound[queue + 1]) for sizes, bound in zip(all_types, bounds, strict=True)]
        free = 1 - load * min(sum(sizes.within(end) for sizes, end in pairs) / total, 1.0)
        waits = load / total * sum(sizes.chunks(end) for sizes, end in pairs) / (2 * free)
        slowdown += sum(
            sizes.slowdown(bound[queue], bound[queue + 1], waits, free_above=free_above, free=free)
            for sizes, bound in zip(types, bounds[: len(types)], strict=True)
        )
        free_above = free
    return slowdown / flows


def _sums(values: ArrayLike) -> Floats:
    return np.concatenate(([0.0], np.cumsum(values)))
