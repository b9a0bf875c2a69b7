"""Ports of switches with many of them, which are taken up some at a time: between them others have their turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from controller.fabric.switch_data import Port

AT_ONCE: Final = 64
"""Half a millisecond's work: mode signals wait for no longer. Fewer at once make no step much shorter."""


class Joining(NamedTuple):
    """A port that is to be taken up as one that has just come up. since: when it did, at the earliest, in seconds.

    unlinked: only if it is no link's.
    """

    dpid: int
    port: Port
    since: float
    unlinked: bool


@dataclass(slots=True)
class _Waiting:
    since: float
    unlinked: bool
    ports: dict[int, Port]
    new: set[int]
    """Numbers of those that have not been taken up before."""


class JoiningPorts:
    """Ports that wait, by switch, those of the first switch first."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, dpid: int) -> bool:
        return dpid in self._waiting

    def add(
        self, dpid: int, ports: Mapping[int, Port], known: Set[int], since: float, *, unlinked: bool
    ) -> None:
        """Have these ports of a switch wait, and no others of its. known: numbers that were taken up before."""
        self.drop(dpid)
        if ports:
            self._waiting[dpid] = _Waiting(since, unlinked, dict(ports), ports.keys() - known)

    def drop(self, dpid: int) -> None:
        """Forget a switch's ports."""
        self._waiting.pop(dpid, None)

    def pop(self, dpid: int, number: int) -> Joining | None:
        """Return a port that waits, which does not any more; None if it does not."""
        waiting = self._waiting.get(dpid)
        if waiting is None or number not in waiting.ports:
            return None
        port = waiting.ports.pop(number)
        waiting.new.discard(number)
        if not waiting.ports:
            self.drop(dpid)
        return Joining(dpid, port, waiting.since, waiting.unlinked)

    def take(self) -> Iterator[Joining]:
        """Yield the next `AT_ONCE` ports, which do not wait any more."""
        for _ in range(AT_ONCE):
            if not self._waiting:
                return
            dpid, waiting = next(iter(self._waiting.items()))
            joining = self.pop(dpid, next(iter(waiting.ports)))
            assert joining is not None  # it was there a line before
            yield joining

    def ports(self, dpid: int) -> Mapping[int, Port]:
        """Return the ports of a switch that wait, by number."""
        return self._waiting[dpid].ports if dpid in self._waiting else {}

    def since(self) -> float | None:
        """Return when the next port came up, seconds; None: no port waits."""
        return next((waiting.since for waiting in self._waiting.values()), None)

    def since_of(self, dpid: int) -> float:
        """Return when the next port of a switch came up, seconds; the switch has ports here."""
        return self._waiting[dpid].since

    def count_new(self, dpid: int) -> int:
        """Return how many ports of a switch wait that have not been taken up before."""
        return len(self._waiting[dpid].new) if dpid in self._waiting else 0

    def count_all_new(self) -> int:
        """Return how many ports of all switches wait that have not been taken up before."""
        return sum(len(waiting.new) for waiting in self._waiting.values())
