"""When each switch is sent what it lacks, and what of it is in force.

Where the fabric has grown, a switch gets its update when all above it have confirmed theirs, so that a path's far end
exists before it is used. What cannot wait (a failure, a mode, a scheme) goes to all at once, upper tiers first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from controller.openflow.wanted import Difference
from controller.plane.in_flight import InFlight
from controller.plane.takeover import KnownSwitch


class Rollout:
    """Args:
    switches: all that are known, by dpid; they may become more.
    """

    def __init__(self, switches: Mapping[int, KnownSwitch]) -> None:
        self._switches = switches
        self._in_flight = InFlight()
        self._touched: set[int] = set()
        self._waiting: set[int] = set()
        self._shape_round = 0
        """The last round by which hosts and routes changed."""
        self._shape_changed = False

    def at_once(self, dpid: int) -> None:
        """Note that the switch's wanted state may have changed, by what cannot wait."""
        self._touched.add(dpid)

    def in_turn(self, dpids: Iterable[int]) -> None:
        """Note that hosts or routes have changed."""
        self._waiting.update(dpids)
        self._shape_changed = True

    def now(self) -> None:
        """Let no switch wait: something that carried packets is gone."""
        self._touched |= self._waiting
        self._waiting.clear()

    def confirmed(self, dpid: int, now: float) -> None:
        """Note that the switch has worked off all that it was sent."""
        self._in_flight.applied(dpid, now)

    def progressed(self, dpid: int, now: float) -> None:
        """Note that the switch has worked off some of what it was sent."""
        self._in_flight.progressed(dpid, now)

    def gone(self, dpid: int, now: float) -> None:
        """Note that the switch's connection is lost, or a new one began: it confirms nothing more of what it
        was sent.
        """
        self._in_flight.applied(dpid, now)
        self._waiting.discard(dpid)

    def forgotten(self, dpid: int, now: float) -> None:
        """Note that the switch is known no more."""
        self.gone(dpid, now)
        self._touched.discard(dpid)

    def send(
        self, first: Mapping[int, Difference], resync: Set[int], tiers: Mapping[int, int], now: float
    ) -> dict[int, Difference]:
        """Return what to send now, by dpid in order. first: entries for switches that must get nothing else yet.

        resync: those that get their whole state.
        """
        shape = self._shape_changed or bool(self._waiting or resync)
        self._shape_changed = False
        self._waiting -= resync
        self._in_flight.sent(first, now)
        updates = {**first, **self._take(self._touched | resync, resync, tiers, now)}
        self._touched.clear()
        while ready := self._those_ready(tiers, now):
            updates |= self._take(ready, frozenset(), tiers, now)
        if shape:
            self._shape_round = self._in_flight.round
        return updates

    def round(self) -> int | None:
        """Return the round by which all that is wanted has been sent; None while some of it waits."""
        return None if self._waiting else self._in_flight.round

    def in_force(self, now: float) -> int:
        """Return the last round that every switch forwards by."""
        return self._in_flight.in_force(now)

    def settled(self, now: float) -> bool:
        """Return whether all switches forward by the present hosts and routes (modes may be on their way)."""
        return not self._waiting and self.in_force(now) >= self._shape_round

    def deadline(self) -> float | None:
        """Return when `send`, `in_force` or `settled` may say something else without an event, seconds; None: never."""
        return self._in_flight.deadline()

    def _take(
        self, dpids: Set[int], resync: Set[int], tiers: Mapping[int, int], now: float
    ) -> dict[int, Difference]:
        changes: dict[int, Difference] = {}
        for dpid in sorted(dpids, key=lambda dpid: (-tiers.get(dpid, 0), dpid)):
            switch = self._switches[dpid]
            if dpid in resync:
                changes[dpid] = switch.wanted.take_whole()
            elif switch.synced and not (change := switch.wanted.take()).empty:
                changes[dpid] = change
        self._in_flight.sent(changes, now)
        return changes

    def _those_ready(self, tiers: Mapping[int, int], now: float) -> set[int]:
        """Return the topmost switches that wait, and none until those above have confirmed what they were sent."""
        if not self._waiting:
            return set()
        highest = max(tiers.get(dpid, 0) for dpid in self._waiting)
        if any(tiers.get(dpid, 0) > highest for dpid in self._in_flight.unconfirmed(now)):
            return set()
        ready = {dpid for dpid in self._waiting if tiers.get(dpid, 0) == highest}
        self._waiting -= ready
        return ready
