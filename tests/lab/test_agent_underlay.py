"""What one agent's raw socket sends is what another's sockets receive: ports, DSCP and bytes."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager

from host_agent.underlay import Underlay
from host_agent.underlay_datagrams import Outgoing
from protocol.underlay import BASE_PORT
from tests.waiting import PATIENCE_S

HERE, THERE = "127.0.77.1", "127.0.77.2"


@contextmanager
def underlays() -> Iterator[tuple[Underlay, Underlay]]:
    first = Underlay(HERE)
    try:
        second = Underlay(THERE)
        try:
            yield first, second
        finally:
            second.close()
    finally:
        first.close()


def received(underlay: Underlay, count: int) -> list[tuple[bytes, str, int, int]]:
    """Wait for *count* datagrams, and return them as they came."""
    got: list[tuple[bytes, str, int, int]] = []
    while len(got) < count:
        ready, _, _ = select.select(list(underlay.sockets), [], [], PATIENCE_S)
        assert ready, f"{len(got)} of {count} came"
        for fd in ready:
            got += underlay.receive(fd)
    return got


def test_lone_datagrams() -> None:
    with underlays() as (sender, receiver):
        sent = [
            Outgoing(THERE, 16384 + index, BASE_PORT, index % 256, bytes([index % 256]) * (1 + 7 * index))
            for index in range(200)
        ]
        sender.send(sent)
        expected = [(one.data, HERE, one.source_port, one.tos) for one in sent]
        assert received(receiver, len(sent)) == expected
        assert sender.unsent == 0


def test_what_cannot_be_sent_is_counted() -> None:
    with underlays() as (sender, _):
        nowhere = Outgoing("255.255.255.255", 20000, BASE_PORT, 0, b"a broadcast, which is refused")
        sender.send([nowhere, nowhere])
        assert sender.unsent == 2
