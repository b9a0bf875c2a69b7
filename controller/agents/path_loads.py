"""What the agents of a leaf know of its paths, shared between them: short flows and delays (TR's counts and queues).

Each agent reports its own, and receives the sum of the others'. Pure, on plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from protocol.control import PathLoad
from protocol.underlay import is_stamp

MOST_DELAY_S: Final = 600.0
NOTHING: Final = PathLoad({}, {})


class PathLoads:
    """By host."""

    def __init__(self) -> None:
        self._loads: dict[str, PathLoad] = {}
        self._sent: dict[str, PathLoad] = {}

    def put(self, host: str, load: PathLoad) -> None:
        """Store what *host* reports; leave out what is no path stamp, no number of flows or no delay."""
        self._loads[host] = PathLoad(
            {stamp: count for stamp, count in load.short_flows.items() if _named(stamp) and count > 0},
            {
                leaf: {
                    stamp: delay
                    for stamp, delay in delays.items()
                    if _named(stamp) and 0 < delay <= MOST_DELAY_S
                }
                for leaf, delays in load.delays_s.items()
            },
        )

    def forget(self, host: str) -> None:
        """Forget what *host* has reported and received: its channel has ended, and it begins anew."""
        self._loads.pop(host, None)
        self._sent.pop(host, None)

    def clear(self) -> None:
        """Forget all reports: under another policy every host reports anew."""
        self._loads.clear()
        self._sent.clear()

    def changes(self, leaves: Mapping[str, str]) -> dict[str, PathLoad]:
        """Return what to send by host, for hosts whose neighbours' loads have changed.

        leaves: the leaf of each host that has a channel.
        """
        by_leaf: dict[str, list[str]] = {}
        for host, leaf in leaves.items():
            if host in self._loads and leaf:  # others report nothing, or their neighbours are unknown
                by_leaf.setdefault(leaf, []).append(host)
        changed = {}
        for hosts in by_leaf.values():
            flows = _sum(self._loads[host].short_flows for host in hosts)
            longest = _two_longest([(host, self._loads[host]) for host in hosts])
            for host in hosts:
                own = self._loads[host].short_flows
                left = {stamp: count - own.get(stamp, 0) for stamp, count in sorted(flows.items())}
                others = PathLoad(
                    {stamp: count for stamp, count in left.items() if count}, _without(longest, host)
                )
                if others != self._sent.get(host, NOTHING):
                    changed[host] = self._sent[host] = others
        return changed


def _named(stamp: str) -> bool:
    return stamp.isascii() and stamp.isdigit() and len(stamp) <= 4 and is_stamp(int(stamp))


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for by_stamp in counts:
        for stamp, count in by_stamp.items():
            total[stamp] = total.get(stamp, 0) + count
    return total


def _two_longest(loads: Sequence[tuple[str, PathLoad]]) -> dict[tuple[str, str], list[tuple[float, str]]]:
    """Return the two longest delays of each path (destination leaf, stamp), and whose they are, the longest first."""
    longest: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for host, load in loads:
        for leaf, delays in load.delays_s.items():
            for stamp, delay in delays.items():
                known = longest.setdefault((leaf, stamp), [])
                known.append((delay, host))
                known.sort(reverse=True)
                del known[2:]
    return longest


def _without(
    longest: Mapping[tuple[str, str], Sequence[tuple[float, str]]], host: str
) -> dict[str, dict[str, float]]:
    """Return the longest delay of each path that is not *host*'s."""
    delays: dict[str, dict[str, float]] = {}
    for (leaf, stamp), known in sorted(longest.items()):
        for delay, whose in known:
            if whose != host:
                delays.setdefault(leaf, {})[stamp] = delay
                break
    return delays
