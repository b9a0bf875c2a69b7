"""The event loop that serves all agents, before other threads where that is allowed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from controller.agents.listeners import ChannelError
from controller.process.control_thread import ControlThread
from controller.process.time_slices import ask_for_precedence
from loops.thread import LoopThread


def channel_loop(
    opening: Callable[[], Awaitable[None]], closing: Callable[[], Awaitable[None]]
) -> LoopThread:
    """Return the loop of the agents' channel, not started; it raises ChannelError."""

    async def first() -> None:
        ask_for_precedence()  # hosts wait for it (CAPTON's requests)
        await opening()

    return LoopThread(
        "capstan-agents",
        first,
        closing,
        subject="the agents' channel",
        error=ChannelError,
        make_thread=ControlThread,
    )
