"""An asyncio event loop in a thread of its own, and the ways into it from other threads."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from controller.agents.listeners import ChannelError
from controller.process.control_thread import ControlThread

T = TypeVar("T")
NICE: Final = -10
"""Of the loop's thread, where that is allowed: it has little to do, and hosts wait for it (CAPTON's requests)."""


class LoopThread:
    """From `start` to `stop`. *opening* runs first in the loop, *closing* last."""

    def __init__(
        self, name: str, opening: Callable[[], Awaitable[None]], closing: Callable[[], Awaitable[None]]
    ) -> None:
        self._name = name
        self._opening = opening
        self._closing = closing
        self._thread: threading.Thread | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Returns when *opening* has; raises ChannelError if that failed."""
        failure: list[BaseException] = []
        ready = threading.Event()

        async def main() -> None:
            self.loop = asyncio.get_running_loop()
            with suppress(OSError):  # not root
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
            self._end = asyncio.Event()
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

        self._thread = ControlThread(lambda: asyncio.run(main()), self._name)
        self._thread.start()
        ready.wait()
        if failure:
            self._thread.join()
            self._thread = None
            error = failure[0]
            if isinstance(error, ChannelError):
                raise error
            raise ChannelError(f"the agents' channel cannot be opened: {error}") from error

    def stop(self) -> None:
        """Returns when *closing* has. Harmless when not started."""
        if self._thread is None or self.loop is None:
            return
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._thread = None

    def post(self, work: Callable[..., object], *arguments: Any) -> None:
        """Have *work* done in the loop; returns at once. Nothing is done where the loop does not run."""
        if self.loop is not None and self._thread is not None:
            with suppress(RuntimeError):  # it has just ended
                self.loop.call_soon_threadsafe(work, *arguments)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have *work* done in the loop, and wait for it. Raises ChannelError where the loop does not run."""
        if self.loop is None or self._thread is None:
            work.close()
            raise ChannelError("the agents' channel is not open")
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()
