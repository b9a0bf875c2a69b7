"""Frames between the HTTP process and the controller, over a pair of Unix sockets, a request at a time.

The HTTP process sends REQUEST (JSON: the strings of its WSGI environment) and the body, of as many bytes as
CONTENT_LENGTH says. The controller answers with HEAD (JSON: status line, headers), DATA as often as needed, and END.
Before HEAD it may send HANDOVER, which asks for the client's connection, and gets HANDED_OVER (with its descriptor) or
DECLINED (the reason, as text). A side that cannot go on closes the pair.
"""

from __future__ import annotations

import asyncio
import enum
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final

from capstan_client.errors import CapstanError

HEADER: Final = struct.Struct("!BI")
"""Of a frame: kind, bytes that follow."""
PIECE: Final = 1 << 16
"""Bytes; at most so many are read, or gathered to be sent, at once."""
NOT_SAID: Final = "the HTTP server did not say what becomes of the connection"


class Kind(enum.IntEnum):
    """Of a frame."""

    REQUEST = 1
    HEAD = 2
    DATA = 3
    END = 4
    HANDOVER = 5
    HANDED_OVER = 6
    DECLINED = 7


class WireError(CapstanError, ConnectionError):
    """The other side has gone, or says what makes no sense here."""


def frame(kind: Kind, payload: bytes = b"") -> bytes:
    """Return a frame: its kind, its length, its payload."""
    return HEADER.pack(kind, len(payload)) + payload


def request_frame(environ: Mapping[str, Any]) -> bytes:
    """Return the REQUEST of a WSGI environment: its strings, but for what a server says of itself."""
    strings = {
        name: value
        for name, value in environ.items()
        if isinstance(value, str) and (name == "wsgi.url_scheme" or "." not in name)
    }
    return frame(Kind.REQUEST, json.dumps(strings).encode())


def head_frame(status: str, headers: list[tuple[str, str]]) -> bytes:
    """Return the frame that an answer begins with."""
    return frame(Kind.HEAD, json.dumps([status, headers]).encode())


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """Return so many bytes. Raise WireError if the other side closes before."""
    parts = []
    while size:
        part = connection.recv(min(size, PIECE))
        if not part:
            raise WireError("the other process has closed the connection")
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_frame(connection: socket.socket) -> tuple[Kind, bytes]:
    """Return the next frame. Raises WireError."""
    kind, size = HEADER.unpack(read_exactly(connection, HEADER.size))
    return Kind(kind), read_exactly(connection, size) if size else b""


async def next_frame(reader: asyncio.StreamReader) -> tuple[Kind, bytes]:
    """Return the next frame, read in an event loop. Raises OSError, asyncio.IncompleteReadError."""
    kind, size = HEADER.unpack(await reader.readexactly(HEADER.size))
    return Kind(kind), await reader.readexactly(size) if size else b""


def send_taken(connection: socket.socket, taken: socket.socket) -> None:
    """Hand over the descriptor of a client's connection, with the frame that says so."""
    socket.send_fds(connection, [frame(Kind.HANDED_OVER)], [taken.fileno()])


def send_taken_here(connection: socket.socket, taken: socket.socket) -> None:
    """Hand over a client's connection to another thread of this process: by its descriptor's number.

    No system has to pass descriptors for it. *taken* is no longer the caller's.
    """
    connection.sendall(frame(Kind.HANDED_OVER, str(taken.detach()).encode()))


def read_taken_here(connection: socket.socket) -> socket.socket | str:
    """Return what `send_taken_here` sent, or why it is not to be had. Raises WireError."""
    kind, payload = read_frame(connection)
    if kind == Kind.HANDED_OVER:
        return socket.socket(fileno=int(payload))
    if kind == Kind.DECLINED:
        return payload.decode()
    raise WireError(NOT_SAID)


def read_taken(connection: socket.socket) -> socket.socket | str:
    """Return the client's connection, or why it is not to be had. Raises WireError."""
    # Descriptors come with the first byte that they were sent with, and lost to one that does not ask for them.
    header, descriptors, _, _ = socket.recv_fds(connection, HEADER.size, 1)
    header += read_exactly(connection, HEADER.size - len(header)) if header else b""
    if len(header) == HEADER.size:
        kind, size = HEADER.unpack(header)
        if kind == Kind.HANDED_OVER and descriptors:
            return socket.socket(fileno=descriptors[0])
        if kind == Kind.DECLINED:
            return read_exactly(connection, size).decode()
    raise WireError(NOT_SAID)
