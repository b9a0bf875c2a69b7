"""A controller's end of the agents' channel, played by a test."""

from __future__ import annotations

import socket
from typing import Any

from protocol.control import Challenge, Hello, Welcome, proof
from protocol.frames import FrameReader, encode
from tests.unit.agents_channel import TOKEN


def receive(connection: socket.socket, kind: type[Any], reader: FrameReader | None = None) -> Any:
    reader = reader or FrameReader()
    connection.settimeout(10)
    while data := connection.recv(65536):
        for message in reader.feed(data):
            if isinstance(message, kind):
                return message
    raise OSError("closed")


def welcome(connection: socket.socket) -> None:
    """Challenge the agent, check its proof and welcome it, as a controller that knows the token does first."""
    connection.sendall(encode(Challenge("ab")))
    hello = receive(connection, Hello)
    assert hello.proof == proof(TOKEN, "agent", "ab")
    connection.sendall(encode(Welcome(proof(TOKEN, "controller", hello.nonce))))
