"""Callbacks for one kind of event: any number may subscribe, none replaces another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, ParamSpec

P = ParamSpec("P")


class Subscribers(Generic[P]):
    """Called in the order in which they subscribed. They subscribe before the first event, in any thread."""

    def __init__(self) -> None:
        self._callbacks: Final[list[Callable[P, None]]] = []

    def subscribe(self, callback: Callable[P, None]) -> None:
        """Have *callback* called at every event from now on, in the notifier's thread: it must return at once."""
        self._callbacks.append(callback)

    def notify(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all. What one raises is raised, and the rest are not called."""
        for callback in self._callbacks:
            callback(*args, **kwargs)
