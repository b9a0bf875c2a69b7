"""One call in another thread for all who ask before it begins: each gets an answer made after it asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedCall(Generic[T]):
    """*work*, done in the thread to which *post* gives it; safe to ask from any other thread."""

    def __init__(self, post: Callable[[Callable[[], None]], None], work: Callable[[], T]) -> None:
        self._post = post
        self._work = work
        self._lock = threading.Lock()
        self._waiting: Future[T] | None = None

    def __call__(self, timeout_s: float = 10.0) -> T:
        """Return the result, or what *work* raised. Raises TimeoutError if it is not there in time."""
        with self._lock:
            mine = self._waiting
            first = mine is None
            if mine is None:
                mine = self._waiting = Future()
        if first:
            self._post(lambda: self._do(mine))
        try:
            return mine.result(timeout_s)
        except TimeoutError:
            with self._lock:
                if self._waiting is mine:  # it was never begun: the next one who asks posts anew
                    self._waiting = None
            raise TimeoutError(f"the controller did not get to it within {timeout_s:g} s") from None

    def _do(self, mine: Future[T]) -> None:
        with self._lock:
            if self._waiting is mine:
                self._waiting = None  # who asks from now on gets the next one
        try:
            mine.set_result(self._work())
        except BaseException as error:
            mine.set_exception(error)
