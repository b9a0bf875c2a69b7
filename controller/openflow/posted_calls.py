"""Closures that other threads have the OpenFlow thread call: posted, or called for their result."""

from __future__ import annotations

import os
import queue
import selectors
import threading
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from controller.process.control_thread import check_control_threads

T = TypeVar("T")


class PostedCalls:
    """A queue whose descriptor is readable while something may be in it.

    carry_out: gets what each `call` returned, in the OpenFlow thread, before its caller does.
    """

    def __init__(self, carry_out: Callable[[object], None]) -> None:
        self._carry_out: Final = carry_out
        self._queue: Final[queue.SimpleQueue[Callable[[], object]]] = queue.SimpleQueue()
        self._wake: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def watch(self, selector: selectors.BaseSelector) -> None:
        """Have *selector* wait for posted closures, too; its key has no data."""
        selector.register(self._wake, selectors.EVENT_READ)

    def post(self, work: Callable[[], object]) -> None:
        """Have *work* called soon. Any thread may post."""
        self._queue.put(work)
        os.eventfd_write(self._wake, 1)

    def pending(self) -> Iterator[Callable[[], object]]:
        """Yield what was posted, also meanwhile. Only the OpenFlow thread takes, once the descriptor was readable."""
        os.eventfd_read(self._wake)
        while not self._queue.empty():
            yield self._queue.get()

    def call(self, work: Callable[[], T], timeout_s: float, *, in_time: bool = False) -> T:
        """Post *work* and return its result, or raise what it raised. Not for the OpenFlow thread, which it waits for.

        in_time: what is not begun by then is never done; what is, is waited for.

        Raises:
            TimeoutError: it is not done after *timeout_s* seconds.
            ControlThreadDiedError: the OpenFlow thread, or another that the controller needs, has died.
        """
        check_control_threads()
        first = threading.Lock()  # for the work, as it begins, or for the end of the wait for it
        answer: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

        def answered() -> None:
            if in_time and not first.acquire(blocking=False):
                return
            try:
                result = work()
                self._carry_out(result)
            except BaseException as error:
                answer.put((None, error))
            else:
                answer.put((result, None))

        self.post(answered)
        try:
            result, error = answer.get(timeout=timeout_s)
        except queue.Empty:
            if not in_time or first.acquire(blocking=False):
                raise TimeoutError(f"the OpenFlow shell did not get to it within {timeout_s:g} s") from None
            result, error = answer.get()
        if error is not None:
            raise error
        return result  # type: ignore[return-value]
