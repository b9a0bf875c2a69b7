"""Connections of agents that were not taken, and what was refused on others: counted, and seldom in the log."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from controller.agents.membership import MembershipError
from controller.rare_log import RareLog
from protocol.frames import ControlError

LOG: Final = logging.getLogger("capstan.agents")
_KINDS: Final[dict[type[Exception], str]] = {
    ControlError: "bad-frames",
    MembershipError: "refused-members",
    TimeoutError: "silent",
}


class Refusals:
    """``counts``: totals since the start, by name."""

    def __init__(self) -> None:
        self.counts: Final[Counter[str]] = Counter()
        self._log = RareLog(LOG)

    def refuse(self, kind: str, reason: str) -> None:
        """Note that a connection is refused."""
        self.counts[kind] += 1
        self._log.say(f"agent refused: {reason}")

    def failed(self, error: Exception) -> str:
        """Note the error by which a connection is not taken; return the reason for the agent."""
        self.refuse(_KINDS.get(type(error), "broken-connections"), str(error) or repr(error))
        return str(error) or "no hello in time"
