"""Reports ended flows to a controller, in the words of a host agent: more of them than a lab carries in a minute."""

from __future__ import annotations

import secrets
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from capstan_client.errors import CapstanError
from protocol.control import (
    ActiveFlows,
    Challenge,
    FlowEntry,
    Hello,
    Ping,
    Pong,
    WatchFlows,
    proof,
)
from protocol.frames import FrameReader, encode
from protocol.limits import ACTIVE_MOST

AGENTS: Final = 32
"""They share the flows: an agent reports few at a time, and few of its reports wait."""
ADDRESSES: Final = ("10.0.99.1", "10.128.99.1")
"""Of the first agent: underlay, overlay."""
REPORTS: Final = 2
"""Of each agent, every `WatchFlows.every_s`."""
_FIRST_PORT: Final = 20_000
_PORTS: Final = 40_000


class ReportingError(CapstanError, RuntimeError):
    """The controller did not take the agent in, or did not ask for flows."""


def report_flows(
    agents_socket: Path, token: str, *, count: int, peer: str, patience_s: float = 120.0
) -> None:
    """Join as `AGENTS` agents, report *count* short flows to *peer* (an overlay address) when asked for flows, and
    leave.

    Raises:
        ReportingError, OSError: and what happened instead.
    """
    with ExitStack() as stack:
        agents = [stack.enter_context(_Agent(agents_socket, token, number)) for number in range(AGENTS)]
        deadline = time.monotonic() + patience_s
        reported, every_s = 0, 0.0
        while reported < count:
            if time.monotonic() > deadline:
                raise ReportingError(
                    f"{reported} of {count} flows were reported within {patience_s:g} s: the controller did not ask"
                )
            asked_s = [agent.asked_s() for agent in agents]
            every_s = min(asked_s)
            for agent in agents if every_s > 0 else ():
                for _ in range(REPORTS):
                    part = min(ACTIVE_MOST, count - reported)
                    if part:
                        agent.report(reported, part, peer)
                        reported += part
            time.sleep(every_s or 0.05)


class _Agent:
    """One agent's channel."""

    def __init__(self, agents_socket: Path, token: str, number: int) -> None:
        self._number, self._token = number + 1, token
        self._every_s = 0.0
        self._frames = FrameReader()
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._channel.connect(str(agents_socket))
        self._channel.setblocking(False)

    def __enter__(self) -> _Agent:
        return self

    def __exit__(self, *error: object) -> None:
        self._channel.close()

    def asked_s(self) -> float:
        """Return how often the controller wants flows, as of now; 0: not at all. Raises ReportingError."""
        while (data := self._read()) is not None:
            for message in self._frames.feed(data):
                if isinstance(message, Challenge):
                    self._channel.sendall(encode(self._hello(message.nonce)))
                elif isinstance(message, Ping):
                    self._channel.sendall(encode(Pong(message.id)))
                elif isinstance(message, WatchFlows):
                    self._every_s = message.every_s
                elif message.type == "refused":
                    raise ReportingError(f"the controller refused: {message}")
        return self._every_s

    def report(self, first: int, count: int, peer: str) -> None:
        """Report flows as if they were active."""
        self._channel.sendall(encode(active_flows(first, count, peer, f"10.128.99.{self._number}")))

    def _read(self) -> bytes | None:
        """Return what has come, None where nothing has."""
        try:
            data = self._channel.recv(1 << 18)
        except BlockingIOError:
            return None
        if not data:
            raise ReportingError("the controller ended the channel")
        return data

    def _hello(self, challenge: str) -> Hello:
        number = self._number
        return Hello(
            proof(self._token, "agent", challenge),
            secrets.token_hex(16),
            f"reported{number}",
            f"10.0.99.{number}",
            f"02:00:00:00:99:{number:02x}",
            [f"10.128.99.{number}"],
            number,
            "benchmark",
        )


def active_flows(first: int, count: int, peer: str, source: str = ADDRESSES[1]) -> ActiveFlows:
    """Return flows of 1 to 100 kB, one after the other, of the hour before now; each 5-tuple again with another
    beginning."""
    now = time.monotonic()
    entries = [
        FlowEntry(
            side="sender",
            protocol=6,
            source=source,
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
