"""Which of all that is ready is served first: the fabric's own switches, and of equals those that have said little."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterable
from typing import Final

from controller.openflow.connection import SwitchConnection

_FABRIC, _OURS, _OTHERS = range(3)

Ready = tuple[selectors.SelectorKey, int]
"""What a selector gives: a key, and what it is ready for."""


class ServingOrder:
    """in_fabric: whether a switch, by datapath id, has a link: only then can its mode signals mean something.

    Whatever reaches the OpenFlow port can connect, and has said nothing yet then.
    """

    def __init__(self, in_fabric: Callable[[int], bool]) -> None:
        self._in_fabric: Final = in_fabric

    def of(self, ready: Iterable[Ready], now: float) -> list[Ready]:
        """Return *ready*, what is to be served first first."""
        return sorted(ready, key=lambda pair: self._key(pair[0].data, now))

    def _key(self, watched: object, now: float) -> tuple[int, float]:
        if not isinstance(watched, SwitchConnection):
            return _OURS, 0.0
        dpid = watched.introduced
        fabric = dpid is not None and self._in_fabric(dpid)
        return (_FABRIC if fabric else _OTHERS), watched.recent_bytes(now)
