"""Responses that are too large to be kept whole: each goes to its reader as it is made, and waits for no other."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

import h11

from controller.api.front.connection import Connection, Headers
from controller.api.front.frames import Kind, next_frame

LOST: Final = (OSError, asyncio.IncompleteReadError)
"""What is raised where the controller's side of a response ends too early."""
_LOG: Final = logging.getLogger("capstan.api")


@dataclass(frozen=True, slots=True)
class Response:
    """A response as far as it is here. ``status``: as WSGI has it, "200 OK"."""

    status: str
    headers: Headers
    pieces: list[bytes]


class LargeResponses:
    """At most *most* at a time; ``above_bytes``: the size from which on a response is large."""

    def __init__(self, most: int, above_bytes: int) -> None:
        self.most = most
        self.above_bytes = above_bytes
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(
        self, waiter: Connection, begun: Response, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send what is there of a response, and the rest as it comes from *reader*. Return False if there are too many.

        Its connection to the controller is closed at the end, which ends what is made for a reader that has gone.
        """
        if len(self._tasks) >= self.most:
            return False
        task = asyncio.create_task(_send(waiter, begun, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    def close(self) -> None:
        """Give up all that are being sent."""
        for task in tuple(self._tasks):
            task.cancel()


async def _send(
    waiter: Connection, begun: Response, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        waiter.begin_answer(begun.status, begun.headers)
        kind, payload = Kind.DATA, b"".join(begun.pieces)
        begun.pieces.clear()
        while kind != Kind.END:
            await waiter.continue_answer(payload)
            if waiter.gone:
                return
            kind, payload = await next_frame(reader)
        waiter.end_answer()
    except (*LOST, h11.LocalProtocolError) as error:
        _LOG.info("%s broke off: %s", waiter.environ.get("REQUEST_URI"), error)
        waiter.abort()
    finally:
        writer.transport.abort()
