"""Which switches are forgotten: those that have been away for long, and are no part of the fabric any more.

A switch whose connection is lost may still forward, so it stays as long as one of its links is up. Without such a link
it is forgotten after `FORGET_AFTER_S`; one that never had a link or a host, after `FORGET_ISOLATED_AFTER_S`. Switches
have numbers of 12 bits (`controller.fabric.numbers`); where all are in use, the switch that has been away the longest
makes room, unless a link joins it to a switch that is connected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from controller.fabric.discovery import LinkDiscovery
from controller.plane.isolated import IsolatedSwitches
from controller.plane.takeover import KnownSwitch
from protocol.underlay import STAMP_FIRST, STAMP_LAST

FORGET_AFTER_S: Final = 300.0
FORGET_ISOLATED_AFTER_S: Final = 5.0
LOOK_EVERY_S: Final = 30.0
"""A switch that lost its last link later is forgotten so much later at most."""
MOST_SWITCHES: Final = STAMP_LAST - STAMP_FIRST + 1


class Forgetting:
    """Args:
    switches: all that are known, by dpid; the caller removes those that `due` and `make_room` name, after `forgotten`.
    """

    def __init__(
        self, switches: Mapping[int, KnownSwitch], discovery: LinkDiscovery, isolated: IsolatedSwitches
    ) -> None:
        self._switches = switches
        self._discovery = discovery
        self._isolated = isolated
        self._isolated_lost_at: dict[int, float] = {}
        self._lost_at: dict[int, float] = {}
        self._look_at: float | None = None
        self._names: dict[int, str] = {}

    def lost(self, dpid: int, now: float) -> None:
        """Note that the switch's connection is lost."""
        if self._isolated.is_isolated(dpid):
            self._isolated_lost_at[dpid] = now
            return
        self._lost_at[dpid] = now
        if self._look_at is None:
            self._look_at = now + FORGET_AFTER_S

    def connected(self, dpid: int) -> None:
        """Note that the switch is connected (again)."""
        self._lost_at.pop(dpid, None)
        self._isolated_lost_at.pop(dpid, None)

    def forgotten(self, dpid: int) -> None:
        """Note that the switch is known no more; its name is kept for what happened before."""
        self.connected(dpid)
        self._names.pop(dpid, None)  # the newest come last
        self._names[dpid] = self._switches[dpid].name
        if len(self._names) > MOST_SWITCHES:
            del self._names[next(iter(self._names))]

    def names(self) -> tuple[tuple[int, str], ...]:
        """Return datapath ids and names of the switches that were forgotten last, at most `MOST_SWITCHES`."""
        return tuple(self._names.items())

    def due(self, now: float) -> list[int]:
        """Return the switches to forget now, by dpid."""
        isolated = [
            dpid for dpid, lost_s in self._isolated_lost_at.items() if now - lost_s >= FORGET_ISOLATED_AFTER_S
        ]
        for dpid in isolated:
            del self._isolated_lost_at[dpid]
        if self._look_at is None or now < self._look_at:
            return isolated
        gone = [
            dpid
            for dpid, lost_s in self._lost_at.items()
            if now - lost_s >= FORGET_AFTER_S and not self._discovery.neighbours(dpid)
        ]
        for dpid in gone:
            del self._lost_at[dpid]
        self._look_at = now + LOOK_EVERY_S if self._lost_at else None
        return isolated + gone

    def make_room(self) -> int | None:
        """Return the switch to forget for the sake of another, or None if all have to stay."""
        for dpid in self._isolated_lost_at:
            del self._isolated_lost_at[dpid]
            return dpid
        for dpid in self._lost_at:  # the longest away comes first
            if not any(self._switches[peer].connected for peer in self._discovery.neighbours(dpid)):
                del self._lost_at[dpid]
                return dpid
        return None

    def deadline(self) -> float | None:
        """Return when `due` may name a switch, seconds; None: not before something else happens."""
        isolated_at = next(iter(self._isolated_lost_at.values()), None)
        times = (self._look_at, None if isolated_at is None else isolated_at + FORGET_ISOLATED_AFTER_S)
        return min((time for time in times if time is not None), default=None)
