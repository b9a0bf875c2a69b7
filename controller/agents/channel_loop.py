"""The event loop that serves all agents, before other threads where that is allowed."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from controller.agents.listeners import ChannelError
from controller.process.control_thread import ControlThread
from loops.thread import LoopThread

NICE: Final = -10
"""Of the loop's thread: it has little to do, and hosts wait for it (CAPTON's requests)."""


def channel_loop(
    opening: Callable[[], Awaitable[None]], closing: Callable[[], Awaitable[None]]
) -> LoopThread:
    """Return the loop of the agents' channel, not started; it raises ChannelError."""

    async def first() -> None:
        with suppress(OSError, AttributeError):  # not root; Windows has no such call
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        await opening()

    return LoopThread(
        "capstan-agents",
        first,
        closing,
        subject="the agents' channel",
        error=ChannelError,
        make_thread=ControlThread,
    )
