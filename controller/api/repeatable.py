"""Requests that change something, made idempotent: one that is repeated for a lost answer gets the same answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Repeatable(Generic[T]):
    """The last *most* answers, by the numbers that clients drew for their requests. Safe to use from any thread."""

    def __init__(self, most: int = 8) -> None:
        self._most = most
        self._answers: dict[int, Future[T]] = {}
        self._lock = threading.Lock()

    def ask(self, question: int | None, work: Callable[[], T]) -> T:
        """Return the answer to request *question*, made by *work* if it is new (None always is); others wait for it.

        What *work* raises is raised for all of them, and is not kept: the next request runs *work* again.
        """
        if question is None:
            return work()
        with self._lock:
            known = self._answers.get(question)
            mine = known or Future[T]()
            self._answers[question] = mine
            while len(self._answers) > self._most:
                del self._answers[next(iter(self._answers))]
        if known is None:
            try:
                mine.set_result(work())
            except BaseException as error:
                with self._lock:
                    if self._answers.get(question) is mine:
                        del self._answers[question]
                mine.set_exception(error)
        return mine.result()
