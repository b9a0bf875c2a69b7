"""What comes of an agent: bytes in, messages out, so many bytes a second, a frame, and of all halves of frames."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from controller.token_bucket import TokenBucket
from protocol.control import FlowReport, Message
from protocol.frames import FrameReader, any_kind
from protocol.limits import FROM_AGENT_BYTES, MIB, OTHER_BYTES, REPORT_BYTES

BYTES_PER_S: Final = 2 * MIB
"""Of one agent: it is read no faster in the long run, which delays only itself."""
BURST_BYTES: Final = 32 * MIB
"""A report of all that two full tables of flows have."""
HALF_FRAMES_BYTES: Final = 256 * MIB
"""Of frames that are not whole, of all agents together."""
SHARE: Final = 0.25
"""Of the loop's time that handling agents' messages takes in the long run: others that ask the loop have the rest."""
BURST_S: Final = 0.5
SLICE_S: Final = 0.002
"""Of agents' messages at a time: then all else that the loop has to do goes first."""


class HalfFrames:
    """Bytes of frames that are not whole yet, by the channel that they are of."""

    def __init__(self, most_bytes: int = HALF_FRAMES_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held: dict[Callable[[str], None], int] = {}
        self._total = 0

    @property
    def total_bytes(self) -> int:
        """Return the bytes of all channels."""
        return self._total

    def hold(self, close: Callable[[str], None], size: int) -> None:
        """Note that a channel holds *size* bytes now (0: none); where all are too many, the one with most is closed.

        close: ends the channel, and stands for it.
        """
        self._total += size - self._held.pop(close, 0)
        if size:
            self._held[close] = size
        while self._total > self._most_bytes:
            most = max(self._held, key=lambda held: self._held[held])
            size = self._held.pop(most)
            self._total -= size
            most(f"half a frame of {size} B, while those of all agents are more than {self._most_bytes} B")


class HandlingTime:
    """Time that goes into what agents send, waits for the interpreter included: all have a share of the loop's."""

    def __init__(self, now: float) -> None:
        self._seconds = TokenBucket(BURST_S, now)
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._slice_s = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until the messages of another agent may be handled; agents take turns, in the order in which they came.

        Without turns all agents that have sent are handled before the loop looks for anything else.
        """
        async with self._turn:
            began = time.monotonic()
            yield
            self._slice_s += time.monotonic() - began
            if self._slice_s >= SLICE_S:
                self._slice_s = 0.0
                await asyncio.sleep(0)

    @contextmanager
    def pause(self, took_s: float, now: float) -> Iterator[float]:
        """Give for how many seconds an agent is not to be read, for whose messages so many have been spent.

        Where all have taken too much, each waits in proportion to what it took itself: who sends little is read soon.
        """
        self._seconds.spend(took_s)
        if self._seconds.level(SHARE, now) >= 0:
            yield 0.0
            return
        self._waiting += 1
        try:
            yield took_s * self._waiting / SHARE
        finally:
            self._waiting -= 1


class Inbound:
    """Of one channel.

    may_report: whether a report was asked for. asked: whether messages of a type are, reports apart. close: ends it.
    """

    def __init__(
        self,
        may_report: Callable[[], bool],
        halves: HalfFrames,
        close: Callable[[str], None],
        now: float,
        *,
        asked: Callable[[str], bool] = any_kind,
    ) -> None:
        self._may_report = may_report
        self._asked = asked
        self._halves = halves
        self._close = close
        self._bytes = TokenBucket(BURST_BYTES, now)
        self._frames = FrameReader(self._most_bytes, self._is_wanted)

    def take(self, data: bytes) -> list[Message]:
        """Return the messages that are whole with *data* and were asked for, or need not be.

        Raises ControlError on what is malformed or too large.
        """
        self._bytes.spend(len(data))
        messages = self._frames.feed(data)
        self._halves.hold(self._close, self._frames.held_bytes)
        return messages

    def wait_s(self, now: float) -> float:
        """Return for how many seconds nothing more is to be read."""
        return max(0.0, -self._bytes.level(BYTES_PER_S, now) / BYTES_PER_S)

    def end(self) -> None:
        """Forget what is held: the channel is over."""
        self._halves.hold(self._close, 0)

    def _is_wanted(self, kind: str) -> bool:
        return self._may_report() if kind == FlowReport.type else self._asked(kind)

    def _most_bytes(self, kind: str) -> int:
        if kind == FlowReport.type and self._may_report():
            return REPORT_BYTES
        return FROM_AGENT_BYTES.get(kind, OTHER_BYTES)
