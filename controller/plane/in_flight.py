"""Updates that switches have not confirmed yet, and up to which one all of them are in force.

A switch confirms an update with a barrier reply, which precedes its datapath by a millisecond or two. One that does
not answer must not hold up the others for ever: after `CONFIRM_LIMIT_S` without a confirmation all that it was sent
counts as confirmed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

DATAPATH_LAG_S: Final = 0.005
"""How long after a switch's confirmation its datapath surely forwards by the update."""
CONFIRM_LIMIT_S: Final = 1.0


class InFlight:
    """Rounds of updates are numbered from 1 on; round n is in force when every switch has worked off all up to n."""

    def __init__(self) -> None:
        self.round: int = 0
        """The latest round sent."""
        self._open: dict[int, tuple[int, float]] = {}
        """By dpid: the first round not confirmed, and when the switch was sent it or has last confirmed anything."""
        self._reached: deque[tuple[int, float]] = deque()
        """Rounds that were confirmed, with when; only those whose datapaths may still lag."""
        self._in_force = 0

    def sent(self, dpids: Iterable[int], now: float) -> None:
        """Note that a round of updates goes out; no round if there are none."""
        fresh = dict.fromkeys(dpids, (self.round + 1, now))
        if fresh:
            self.round += 1
            self._open = fresh | self._open

    def applied(self, dpid: int, now: float) -> None:
        """Note that the switch has confirmed all that it was sent; or is gone."""
        if self._open.pop(dpid, None) is not None:
            self._note(now)

    def progressed(self, dpid: int, now: float) -> None:
        """Note that the switch has confirmed some of what it was sent: it is slow, not silent."""
        if dpid in self._open:
            self._open[dpid] = (self._open[dpid][0], now)

    def unconfirmed(self, now: float) -> frozenset[int]:
        """Return switches that have yet to confirm something."""
        self._expire(now)
        return frozenset(self._open)

    def in_force(self, now: float) -> int:
        """Return the last round that is in force, with all before it, in every switch."""
        self._expire(now)
        while self._reached and self._reached[0][1] + DATAPATH_LAG_S <= now:
            self._in_force = self._reached.popleft()[0]
        return self._in_force

    def deadline(self) -> float | None:
        """Return when `in_force` may next say more, or `unconfirmed` less, without an event, seconds; None: never."""
        times = [sent_s + CONFIRM_LIMIT_S for _, sent_s in self._open.values()]
        if self._reached:
            times.append(self._reached[0][1] + DATAPATH_LAG_S)
        return min(times, default=None)

    def _expire(self, now: float) -> None:
        late = [dpid for dpid, (_, sent_s) in self._open.items() if sent_s + CONFIRM_LIMIT_S <= now]
        for dpid in late:
            self.applied(dpid, now)

    def _note(self, now: float) -> None:
        reached = min((first for first, _ in self._open.values()), default=self.round + 1) - 1
        if reached > (self._reached[-1][0] if self._reached else self._in_force):
            self._reached.append((reached, now))
