"""Who may connect while it is not known who it is: so many at a time, and a share for each peer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_UNKNOWN: Final = 256
"""Connections at a time that have not said who they are."""
MOST_UNKNOWN_PER_PEER: Final = 32
"""The same of one address, or of one user of this machine; root, and who runs the controller, may have all."""


class UnknownPeers:
    """Connections by peer (`Session.peer`) until they have said who they are."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    @contextmanager
    def place(self, peer: str) -> Iterator[bool]:
        """Give True, and a place until the end, if there is one. *peer*: "" for one that may have all."""
        full = self._taken.total() >= MOST_UNKNOWN or (peer and self._taken[peer] >= MOST_UNKNOWN_PER_PEER)
        if full:
            yield False
            return
        self._taken[peer] += 1
        try:
            yield True
        finally:
            self._taken[peer] -= 1
            if not self._taken[peer]:
                del self._taken[peer]
