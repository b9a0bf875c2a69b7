"""What the agents of a leaf know of its paths, shared between them: short flows and delays (TR's counts and queues).

Each agent reports its own, and receives what the others have together (`native/agent/src/paths/sharing.rs`, as in
simulations).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from capstan_native import path_loads_of_others

from controller.rare_log import RareLog
from protocol.control import PathLoad
from protocol.frames import encode
from protocol.underlay import STAMP_FIRST, STAMP_LAST, is_stamp_name

MOST_DELAY_S: Final = 600.0
MOST_FLOWS: Final = 1 << 31
"""From here on a count is no number of flows."""
MOST_DELAYS: Final = 65_536
"""Delays, or leaves without any, of one report: sixteen paths to each of the most leaves that there can be."""
MOST_STORED: Final = 1 << 20
"""Delays, or leaves without any, of all reports: some 200 MiB."""
MOST_SHARED: Final = 1 << 20
"""Delays that all agents of a leaf receive together: each receives those of all others."""
MOST_SENT: Final = 1 << 22
"""Delays that all agents of all leaves receive together: some 64 MiB of messages, if all of them wait to be sent."""
LEAF_CHARS: Final = 16
_STAMPS: Final = frozenset(map(str, range(STAMP_FIRST, STAMP_LAST + 1)))
"""Names of stamps as agents write them: to look a name up takes a quarter of the time that looking at it takes."""
T = TypeVar("T")
NOTHING: Final = PathLoad({}, {})
_FAULTS: Final = RareLog(logging.getLogger(__name__), logging.ERROR)


class LoadChange(NamedTuple):
    """What a host is to receive in place of what it has: the load of its neighbours."""

    host: str
    load: PathLoad


class PathLoads:
    """By host."""

    def __init__(self) -> None:
        self._loads: dict[str, PathLoad] = {}
        self._sizes: dict[str, int] = {}
        self._stored = 0
        self._sent: dict[str, bytes] = {}
        """A digest of what each host has, which may be large."""

    def put(self, host: str, load: PathLoad) -> None:
        """Store what *host* reports; leave out what is no leaf, path stamp, number or delay, and what is beyond
        `MOST_DELAYS`. If all reports have more than `MOST_STORED`, those with more than their share keep that."""
        self._put(
            host,
            {
                stamp: count
                for stamp, count in load.short_flows.items()
                if is_stamp_name(stamp) and 0 < count < MOST_FLOWS
            },
            _delays(load.delays_s),
        )
        if self._stored <= MOST_STORED:
            return
        share = MOST_STORED // len(self._loads)
        for name in [name for name, size in self._sizes.items() if size > share]:
            self._put(name, self._loads[name].short_flows, _first(self._loads[name].delays_s, share))

    def forget(self, host: str) -> None:
        """Forget what *host* has reported and received: its channel has ended, and it begins anew."""
        if self._loads.pop(host, None) is not None:
            self._stored -= self._sizes.pop(host)
        self._sent.pop(host, None)

    def clear(self) -> None:
        """Forget all reports: under another policy every host reports anew."""
        self._loads.clear()
        self._sizes.clear()
        self._stored = 0
        self._sent.clear()

    def changes(self, leaves: Mapping[str, str]) -> Iterator[LoadChange]:
        """Yield what to send, for hosts whose neighbours' loads have changed: leaf by leaf, for all may be much.

        leaves: the leaf of each host that has a channel. A leaf whose loads cannot be put together is left out and
        logged; it keeps no other leaf from receiving its own.
        """
        by_leaf: dict[str, list[str]] = {}
        for host, leaf in leaves.items():
            if host in self._loads and leaf:  # others report nothing, or their neighbours are unknown
                by_leaf.setdefault(leaf, []).append(host)
        most_each = MOST_SENT // max(1, sum(map(len, by_leaf.values())))
        for leaf, hosts in by_leaf.items():
            try:
                shared = _of_others(_bounded([self._loads[host] for host in hosts], most_each))
            except Exception as error:
                _FAULTS.say(f"leaf {leaf}: its agents' reports of paths cannot be put together: {error!r}")
                continue
            for host, others in zip(hosts, shared, strict=True):
                digest = _digest(others)
                if digest != self._sent.get(host, _NOTHING_SENT):
                    self._sent[host] = digest
                    yield LoadChange(host, others)

    def _put(self, host: str, short_flows: dict[str, int], delays_s: dict[str, dict[str, float]]) -> None:
        size = _size(delays_s)
        self._stored += size - self._sizes.get(host, 0)
        self._sizes[host] = size
        self._loads[host] = PathLoad(short_flows, delays_s)


def _digest(load: PathLoad) -> bytes:
    """Return a digest that is equal for equal loads: leaves and stamps are in order in both."""
    return blake2b(encode(load), digest_size=16).digest()


_NOTHING_SENT: Final = _digest(NOTHING)


def _size(delays: Mapping[str, Mapping[str, float]]) -> int:
    """Return how many delays there are; a leaf without any counts as one."""
    return sum(max(1, len(known)) for known in delays.values())


def _delays(reported: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    remaining, usable_delays = MOST_DELAYS, dict[str, dict[str, float]]()
    for leaf, delays in reported.items():
        if len(leaf) > LEAF_CHARS or remaining <= 0:
            continue
        usable = {
            stamp: delay
            for stamp, delay in delays.items()
            if (stamp in _STAMPS or is_stamp_name(stamp)) and 0 < delay <= MOST_DELAY_S
        }
        usable_delays[leaf] = usable if len(usable) <= remaining else dict(islice(usable.items(), remaining))
        remaining -= max(1, len(usable_delays[leaf]))
    return usable_delays


def _bounded(loads: list[PathLoad], most_each: int) -> list[PathLoad]:
    """Return reports of a leaf's agents with so many paths in all that a message holds them, and `MOST_SHARED` all.

    most_each: paths that each agent may receive besides. Where they name more than that, each agent has the same
    share: one that invents paths pushes out few of another's.
    """
    most = min(MOST_DELAYS, MOST_SHARED // len(loads), most_each)
    if sum(_size(load.delays_s) for load in loads) <= most:
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
        remaining -= max(1, len(first[leaf]))
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
