"""An asyncio event loop in a thread of its own, and the ways into it from other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
MakeThread = Callable[[Callable[[], object], str], threading.Thread]
"""Return a thread that does this work under this name, not started."""


def daemon_thread(work: Callable[[], object], name: str) -> threading.Thread:
    """Return a thread that does not keep the process alive."""
    return threading.Thread(target=work, name=name, daemon=True)


class LoopThread:
    """Runs a loop from `start` to `stop`. *opening* runs first in the loop, *closing* last.

    subject: how messages name the work ("the agents' channel"). error: the exception that `start` and `run` raise.
    errors_end: an error that a callback lets out ends the thread, out of the work that *make_thread* got; else it is
    logged.
    """

    def __init__(
        self,
        name: str,
        opening: Callable[[], Awaitable[None]],
        closing: Callable[[], Awaitable[None]],
        *,
        subject: str,
        error: type[Exception] = RuntimeError,
        errors_end: bool = False,
        make_thread: MakeThread = daemon_thread,
    ) -> None:
        self._name = name
        self._opening = opening
        self._closing = closing
        self._subject = subject
        self._error = error
        self._errors_end = errors_end
        self._make_thread = make_thread
        self._thread: threading.Thread | None = None
        self._fault: BaseException | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Return when *opening* has ended; raise what it raised, as *error*."""
        failure: list[BaseException] = []
        ready = threading.Event()

        async def main() -> None:
            self.loop = asyncio.get_running_loop()
            self._end = asyncio.Event()
            if self._errors_end:
                self.loop.set_exception_handler(self._caught)
            try:
                await self._opening()
            except BaseException as error:
                failure.append(error)
                await self._closing()
                return
            finally:
                ready.set()
            await self._end.wait()
            await self._closing()
            if self._fault is not None:
                raise self._fault

        def run() -> None:
            # Streams wait for sockets of their own, which the loop that Windows has by default cannot.
            runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
            try:
                runner.get_loop()
            except Exception as error:  # where no descriptor is left
                failure.append(error)
                ready.set()
                return
            with runner:
                runner.run(main())

        self._thread = self._make_thread(run, self._name)
        self._thread.start()
        ready.wait()
        if failure:
            self._thread.join()
            self._thread = None
            error = failure[0]
            if isinstance(error, self._error):
                raise error
            raise self._error(f"{self._subject} cannot be opened: {error}") from error

    def stop(self) -> None:
        """Return when *closing* has ended. Harmless when not started."""
        if self._thread is None or self.loop is None:
            return
        self.post(self._end.set)
        self._thread.join()
        self._thread = None

    def post(self, work: Callable[..., object], *arguments: Any) -> None:
        """Have *work* done in the loop; return at once. Do nothing where the loop does not run."""
        if self.loop is not None and self._thread is not None:
            with suppress(RuntimeError):  # it has just ended
                self.loop.call_soon_threadsafe(work, *arguments)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have *work* done in the loop, and return its result. Raise *error* where the loop does not run, or ends."""
        if self.loop is None or self._thread is None:
            work.close()
            raise self._error(f"{self._subject} is not open")
        try:
            waiting = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:  # it has just ended
            work.close()
            raise self._error(f"{self._subject} is not open") from None
        try:
            return waiting.result()
        except CancelledError:  # it ended meanwhile
            raise self._error(f"{self._subject} is not open any more") from None

    def _caught(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        loop.default_exception_handler(context)
        if self._fault is None and isinstance(error := context.get("exception"), BaseException):
            self._fault = error
            self._end.set()
