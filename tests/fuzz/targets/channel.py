"""Frames of the channel between controller and agents."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.admission import Request
from protocol.control import (
    Counters,
    Hello,
    Ping,
    Pong,
    Report,
)
from protocol.frames import ControlError, FrameReader, encode
from tests.fuzz.target import Target


class AgentsChannel(Target):
    """Frames of the channel between controller and agents: ControlError or messages."""

    samples = tuple(
        encode(one)
        for one in (
            Hello("p", "n", "h1", "10.0.1.1", "02:00:00:00:00:01", ["10.128.1.1"], 7, "0.1.0"),
            Report(3, True),
            Counters({"packets_sent": 5}),
            Ping(1),
            Pong(1),
            Request(1, 7, "10.0.2.1", 100_000),
        )
    )

    def run(self, messages: Sequence[bytes]) -> None:
        reader = FrameReader()
        for data in messages:
            try:
                for one in reader.feed(data):
                    encode(one)
            except ControlError:
                return
