"""What the agents of a leaf know of its paths, shared between them: short flows and delays (TR's counts and queues).

Each agent reports its own, and receives what the others have together (`native/agent/src/paths/sharing.rs`, as in
simulations).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from capstan_native import path_loads_of_others

from controller.rare_log import RareLog
from protocol.control import PathLoad
from protocol.underlay import is_stamp_name

MOST_DELAY_S: Final = 600.0
MOST_FLOWS: Final = 1 << 31
"""From here on a count is no number of flows."""
MOST_DELAYS: Final = 65_536
"""Delays, or leaves without any, of one report: sixteen paths to each of the most leaves that there can be."""
MOST_SHARED: Final = 1 << 20
"""Delays that all agents of a leaf receive together: each receives those of all others."""
LEAF_CHARS: Final = 16
T = TypeVar("T")
NOTHING: Final = PathLoad({}, {})
_FAULTS: Final = RareLog(logging.getLogger(__name__), logging.ERROR)


class PathLoads:
    """By host."""

    def __init__(self) -> None:
        self._loads: dict[str, PathLoad] = {}
        self._sent: dict[str, PathLoad] = {}

    def put(self, host: str, load: PathLoad) -> None:
        """Store what *host* reports; leave out what is no leaf, path stamp, number or delay, and what is beyond
        `MOST_DELAYS`."""
        self._loads[host] = PathLoad(
            {
                stamp: count
                for stamp, count in load.short_flows.items()
                if is_stamp_name(stamp) and 0 < count < MOST_FLOWS
            },
            _delays(load.delays_s),
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

        leaves: the leaf of each host that has a channel. A leaf whose loads cannot be put together is left out and
        logged; it keeps no other leaf from receiving its own.
        """
        by_leaf: dict[str, list[str]] = {}
        for host, leaf in leaves.items():
            if host in self._loads and leaf:  # others report nothing, or their neighbours are unknown
                by_leaf.setdefault(leaf, []).append(host)
        changed = {}
        for leaf, hosts in by_leaf.items():
            try:
                shared = _of_others(_bounded([self._loads[host] for host in hosts]))
            except Exception as error:
                _FAULTS.say(f"leaf {leaf}: its agents' reports of paths cannot be put together: {error!r}")
                continue
            for host, others in zip(hosts, shared, strict=True):
                if others != self._sent.get(host, NOTHING):
                    changed[host] = self._sent[host] = others
        return changed


def _delays(reported: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    remaining, usable_delays = MOST_DELAYS, dict[str, dict[str, float]]()
    for leaf, delays in reported.items():
        if len(leaf) > LEAF_CHARS or remaining <= 0:
            continue
        usable = (item for item in delays.items() if is_stamp_name(item[0]) and 0 < item[1] <= MOST_DELAY_S)
        usable_delays[leaf] = dict(islice(usable, remaining))
        remaining -= max(1, len(usable_delays[leaf]))
    return usable_delays


def _bounded(loads: list[PathLoad]) -> list[PathLoad]:
    """Return reports of a leaf's agents with so many paths in all that a message holds them, and `MOST_SHARED` all.

    Where they name more paths than that, each agent has the same share: one that invents paths pushes out few of
    another's.
    """
    most = min(MOST_DELAYS, MOST_SHARED // len(loads))
    if sum(len(known) for load in loads for known in load.delays_s.values()) <= most:
        return loads
    named: set[tuple[str, str]] = set()
    for load in loads:
        named.update((leaf, stamp) for leaf, known in load.delays_s.items() for stamp in known)
        if len(named) > most:
            return [PathLoad(load.short_flows, _first(load.delays_s, most // len(loads))) for load in loads]
    return loads


def _first(delays: Mapping[str, Mapping[str, float]], most: int) -> dict[str, dict[str, float]]:
    """Return the first *most* delays, by leaf."""
    remaining, first = most, dict[str, dict[str, float]]()
    for leaf, known in delays.items():
        if remaining <= 0:
            break
        first[leaf] = dict(islice(known.items(), remaining))
        remaining -= len(first[leaf])
    return first


def _of_others(loads: Sequence[PathLoad]) -> list[PathLoad]:
    """Return for each agent of a leaf what the others have together."""
    plain = [
        (_by_stamp(load.short_flows), {leaf: _by_stamp(known) for leaf, known in load.delays_s.items()})
        for load in loads
    ]
    return [
        PathLoad(_by_text(flows), {leaf: _by_text(known) for leaf, known in delays.items()})
        for flows, delays in path_loads_of_others(plain)
    ]


def _by_stamp(values: Mapping[str, T]) -> dict[int, T]:
    return {int(stamp): value for stamp, value in values.items()}


def _by_text(values: Mapping[int, T]) -> dict[str, T]:
    return {str(stamp): value for stamp, value in values.items()}
