"""Requests that change something, made idempotent: a request that is repeated gets the same response."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Repeatable(Generic[T]):
    """The last *most* responses, by the numbers that clients drew for their requests. Safe to use from any thread."""

    def __init__(self, most: int = 8) -> None:
        self._most = most
        self._responses: dict[int, Future[T]] = {}
        self._lock = threading.Lock()

    def respond(self, number: int | None, work: Callable[[], T]) -> T:
        """Return the response to request *number*, made by *work* if it is new (None: always); duplicates wait for it.

        What *work* raises is raised for all of them, and is not stored: the next request runs *work* again.
        """
        if number is None:
            return work()
        with self._lock:
            known = self._responses.get(number)
            mine = known or Future[T]()
            self._responses[number] = mine
            while len(self._responses) > self._most:
                del self._responses[next(iter(self._responses))]
        if known is None:
            try:
                mine.set_result(work())
            except BaseException as error:
                with self._lock:
                    if self._responses.get(number) is mine:
                        del self._responses[number]
                mine.set_exception(error)
        return mine.result()
