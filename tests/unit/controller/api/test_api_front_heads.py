"""Heads of requests that are too long: refused however many of their bytes are read at once."""

from __future__ import annotations

import asyncio
import fcntl
import json
import socket
import struct
import termios

import pytest

from controller.api.front.connection import MOST_HEAD_BYTES
from controller.api.front.limits import FrontSettings
from controller.api.front.server import HttpServer
from tests.waiting import eventually


def connect() -> socket.socket:
    raise AssertionError("no request is to be answered")


def unacknowledged_bytes(connection: socket.socket) -> int:
    """Return how much of what was sent the other end does not have yet (tcp(7), SIOCOUTQ)."""
    return int(struct.unpack("=i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))[0])


async def answer_to(listener: socket.socket, client: socket.socket) -> bytes:
    """Return what a server of *listener* sends to *client* until it ends the connection."""
    until = asyncio.Event()
    serving = asyncio.create_task(HttpServer(listener, connect, FrontSettings(workers=0)).serve(until))
    answer = await asyncio.to_thread(lambda: b"".join(iter(lambda: client.recv(1 << 16), b"")))
    client.close()
    until.set()
    await serving
    return answer


@pytest.mark.parametrize("size", [MOST_HEAD_BYTES, 2 * MOST_HEAD_BYTES])
@pytest.mark.parametrize("end", [b"\r\n\r\n", b""], ids=["whole", "not whole"])
def test_a_head_that_is_read_at_once_is_refused_if_it_is_too_long(size: int, end: bytes) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        client = socket.create_connection(listener.getsockname(), timeout=30)
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * size + end)
        eventually(lambda: unacknowledged_bytes(client) == 0, "all of it at the listener")
        answer = asyncio.run(answer_to(listener, client))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 "), answer
    assert json.loads(body)["detail"] == "the head of a request has at most 64 KiB: leave headers out"
