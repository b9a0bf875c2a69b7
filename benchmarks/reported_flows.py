"""Reports ended flows to a controller, in the words of a host agent: more of them than a lab carries in a minute."""

from __future__ import annotations

import secrets
import socket
import time
from pathlib import Path
from typing import Final

from capstan_client.errors import CapstanError
from protocol.control import (
    ActiveFlows,
    Challenge,
    FlowEntry,
    Hello,
    Message,
    Ping,
    Pong,
    WatchFlows,
    Welcome,
    proof,
)
from protocol.frames import FrameReader, encode

HOST: Final = "reported"
ADDRESSES: Final = ("10.0.99.99", "10.128.99.99")
AT_A_TIME: Final = 5_000
"""Flows in one message."""
_FIRST_PORT: Final = 20_000
_PORTS: Final = 40_000


class ReportingError(CapstanError, RuntimeError):
    """The controller did not take the agent in, or did not ask for flows."""


def report_flows(agents_socket: Path, token: str, count: int, peer: str, patience_s: float = 20.0) -> None:
    """Join as an agent, report *count* short flows to *peer* (an overlay address) when asked for flows, and leave.

    Raises:
        ReportingError, OSError: and what happened instead.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.settimeout(patience_s)
        channel.connect(str(agents_socket))
        frames = FrameReader()
        nonce = secrets.token_hex(16)
        reported = 0
        deadline = time.monotonic() + patience_s
        while reported < count:
            if time.monotonic() > deadline:
                raise ReportingError(f"the controller did not ask for flows within {patience_s:g} s")
            for message in _messages(channel, frames):
                if isinstance(message, Challenge):
                    channel.sendall(encode(_hello(token, message.nonce, nonce)))
                elif isinstance(message, Ping):
                    channel.sendall(encode(Pong(message.id)))
                elif isinstance(message, WatchFlows) and message.every_s > 0:
                    while reported < count:
                        part = min(AT_A_TIME, count - reported)
                        channel.sendall(encode(active_flows(reported, part, peer)))
                        reported += part
                elif not isinstance(message, Welcome) and message.type == "refused":
                    raise ReportingError(f"the controller refused: {message}")


def _messages(channel: socket.socket, frames: FrameReader) -> list[Message]:
    data = channel.recv(1 << 18)
    if not data:
        raise ReportingError("the controller ended the channel")
    return frames.feed(data)


def _hello(token: str, challenge: str, nonce: str) -> Hello:
    underlay, overlay = ADDRESSES
    return Hello(
        proof(token, "agent", challenge),
        nonce,
        HOST,
        underlay,
        "02:00:00:00:99:99",
        [overlay],
        99,
        "benchmark",
    )


def active_flows(first: int, count: int, peer: str) -> ActiveFlows:
    """Return flows of 1 to 100 kB, one after the other, of the hour before now; each 5-tuple again with another
    beginning."""
    now = time.monotonic()
    entries = [
        FlowEntry(
            side="sender",
            protocol=6,
            source=ADDRESSES[1],
            source_port=_FIRST_PORT + number % _PORTS,
            destination=peer,
            destination_port=7000 + number // _PORTS,
            traffic_class="short",
            packets=1 + number % 67,
            bytes=1_500 * (1 + number % 67),
            first_s=now - 3600 + number * 0.03,
            last_s=now - 3600 + number * 0.03 + 0.001 * (1 + number % 997),
        )
        for number in range(first, first + count)
    ]
    return ActiveFlows(now, entries)
