"""Which agents that join make an event: one that connects without end is not to push all others' out of the log."""

from __future__ import annotations

from typing import Final

from controller.token_bucket import TokenBucket

MOST_JOINS: Final = 16
"""Events of one host's agent that joins, at once; in the long run one every `EVERY_S` seconds."""
EVERY_S: Final = 10.0


class AgentJoins:
    """By host, as long as it is a member. For one thread."""

    def __init__(self) -> None:
        self._hosts: dict[str, TokenBucket] = {}

    def joined(self, host: str, now: float) -> bool:
        """Return whether this makes an event: the agent of *host* has joined, for the first time or again."""
        return self._hosts.setdefault(host, TokenBucket(MOST_JOINS, now)).take(1 / EVERY_S, now)

    def left(self, host: str) -> None:
        """Forget a host that is no member any more."""
        self._hosts.pop(host, None)
