"""What switches refused, and which of them are therefore unlike what the control plane believes."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from typing import Final

from controller.openflow.errors import SwitchError

HEAL_EVERY_S: Final = 30.0
"""A switch that refused an update is made to connect anew (and gets its whole state) at most this often."""
KEPT_ERRORS: Final = 256


class Refusals:
    """Times are seconds of one clock."""

    def __init__(self) -> None:
        self._errors: deque[SwitchError] = deque(maxlen=KEPT_ERRORS)
        self._healed: dict[int, float] = {}
        self._unlike: dict[int, tuple[float, tuple[SwitchError, ...]]] = {}
        self._heal_at: dict[int, float] = {}
        """Of switches that are to begin anew, but did so too short a time ago."""

    def note(self, error: SwitchError) -> None:
        """Keep an error for `latest`."""
        self._errors.append(error)

    def latest(self) -> tuple[SwitchError, ...]:
        """Return the last errors, oldest first."""
        return tuple(self._errors)

    def update_refused(self, dpid: int, errors: tuple[SwitchError, ...], now: float) -> bool:
        """Note that the switch refused a part of an update. Return whether it is to begin anew now."""
        self._prune(now)
        self._unlike[dpid] = (now, errors)
        heal_at = self._healed.get(dpid, -HEAL_EVERY_S) + HEAL_EVERY_S
        if now < heal_at:
            self._heal_at[dpid] = heal_at
            return False
        self._healed[dpid] = now
        return True

    def began_anew(self, dpid: int) -> None:
        """Note that it gets its whole state now."""
        self._unlike.pop(dpid, None)
        self._heal_at.pop(dpid, None)

    def due(self, now: float) -> list[int]:
        """Return the switches that are to begin anew now; each is named once."""
        due = [dpid for dpid, heal_at in self._heal_at.items() if heal_at <= now]
        for dpid in due:
            del self._heal_at[dpid]
            self._healed[dpid] = now
        self._prune(now)
        return due

    def deadline(self) -> float | None:
        """Return when `due` names a switch next, seconds; None: not before something else happens."""
        return min(self._heal_at.values(), default=None)

    def open(self, connected: Container[int], now: float) -> list[SwitchError]:
        """Return the errors of switches that have not begun anew since; of one that is gone only while it may come
        back."""
        return [
            error
            for dpid, (refused_s, errors) in self._unlike.items()
            if dpid in connected or now - refused_s < HEAL_EVERY_S
            for error in errors
        ]

    def _prune(self, now: float) -> None:
        """Drop what says nothing any more: a datapath id may have been made up, and not come back."""
        self._healed = {
            dpid: healed_at for dpid, healed_at in self._healed.items() if now - healed_at < HEAL_EVERY_S
        }
        # By then its connection has been closed, and `began_anew` came if it has connected again.
        self._unlike = {
            dpid: refusal
            for dpid, refusal in self._unlike.items()
            if dpid in self._heal_at or now - refusal[0] < HEAL_EVERY_S
        }
