"""Whether the fabric has settled: all that is connected is discovered, and forwards as is wanted of it."""

from __future__ import annotations

from collections.abc import Mapping

from controller.fabric.discovery import LinkDiscovery
from controller.plane.rollout import Rollout
from controller.plane.takeover import KnownSwitch


class Settling:
    """Args:
    switches: all that are known, by dpid; the caller's.
    """

    def __init__(
        self, switches: Mapping[int, KnownSwitch], discovery: LinkDiscovery, rollout: Rollout
    ) -> None:
        self._switches = switches
        self._discovery = discovery
        self._rollout = rollout
        self._clear_at: float | None = None
        self._stale = False

    def changed(self) -> None:
        """Note that a switch, link or port is not as it was: `look` finds anew when all are discovered."""
        self._stale = True

    def look(self, now: float) -> None:
        """Find when discovery has next finished with a switch, if that may be another time than before."""
        if self._stale or (self._clear_at is not None and now >= self._clear_at):
            self._clear_at, self._stale = self._next_clear(now), False

    def deadline(self) -> float | None:
        """Return when `look` wants to be called next, seconds; None: not before something else happens."""
        return self._clear_at

    def settled(self, now: float) -> bool:
        """Return whether switches are connected, and every one of them has been discovered and has its state."""
        connected = [switch for switch in self._switches.values() if switch.connected]
        return (
            bool(connected)
            and self._rollout.settled(now)
            and all(switch.synced and self._discovery.is_clear(switch.dpid, now) for switch in connected)
        )

    def _next_clear(self, now: float) -> float | None:
        times = (
            self._discovery.clear_at(dpid) for dpid, switch in self._switches.items() if switch.connected
        )
        return min((time for time in times if time > now), default=None)
