"""How many short flows are active on each path, shared between the agents of a leaf (TR's count per output queue).

Each agent tells its own counts, and is told the sum of the others'. Pure, on plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from protocol.underlay import is_stamp


class ShortFlowShares:
    """Counts by host and path stamp (as text, as in `protocol.control.ShortFlows`)."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}
        self._told: dict[str, dict[str, int]] = {}

    def put(self, host: str, counts: Mapping[str, int]) -> None:
        """What *host* has now. What is no path stamp or no number of flows is left out."""
        self._counts[host] = {
            stamp: count
            for stamp, count in counts.items()
            if stamp.isascii() and stamp.isdigit() and len(stamp) <= 4 and is_stamp(int(stamp)) and count > 0
        }

    def forget(self, host: str) -> None:
        """The channel to *host* ended: it is to be told everything again when it is back."""
        self._counts.pop(host, None)
        self._told.pop(host, None)

    def clear(self) -> None:
        """Another policy: nobody counts until told so."""
        self._counts.clear()
        self._told.clear()

    def news(self, leaves: Mapping[str, str]) -> dict[str, dict[str, int]]:
        """By host what it is to be told: those to whom it is news. leaves: leaf of each host that has a channel."""
        by_leaf: dict[str, list[str]] = {}
        for host, leaf in leaves.items():
            by_leaf.setdefault(leaf, []).append(host)
        news = {}
        for leaf, hosts in by_leaf.items():
            total = _sum(self._counts.get(host, {}) for host in hosts)
            for host in hosts:
                own = self._counts.get(host)
                if own is None or not leaf:
                    continue  # it does not count, or we do not know who its neighbours are
                others = {stamp: count - own.get(stamp, 0) for stamp, count in total.items()}
                others = {stamp: count for stamp, count in sorted(others.items()) if count}
                if others != self._told.get(host, {}):
                    news[host] = self._told[host] = others
        return news


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for stamp, count in one.items():
            total[stamp] = total.get(stamp, 0) + count
    return total
