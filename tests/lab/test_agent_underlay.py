"""What one agent's raw socket sends is what another's sockets receive: ports, DSCP and bytes, alone and in bursts."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from host_agent.underlay import Underlay
from host_agent.wire import Arrived, Burst, Outgoing
from protocol.datagram import Kind, encode_fields
from protocol.underlay import BASE_PORT
from tests.unit.inner_packets import tcp

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
    """Datagrams as they were sent, put together again where they came as runs."""
    got: list[tuple[bytes, str, int, int]] = []
    while len(got) < count:
        ready, _, _ = select.select(list(underlay.sockets), [], [], 60)
        assert ready, f"{len(got)} of {count} came"
        for fd in ready:
            for item in underlay.receive(fd):
                if len(item) == 4:
                    got.append(item)
                    continue
                address, tos, kind, flags, session, number, sent, flow, position, _, ports, bodies = item
                for offset, (port, body) in enumerate(zip(ports, bodies, strict=True)):
                    fields = (kind, flags, session, number + offset, sent, flow, position + offset)
                    got.append((encode_fields(*fields, body), address, port, tos))
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


def test_bursts_between_lone_datagrams() -> None:
    with underlays() as (sender, receiver):
        bodies = [
            tcp(bytes([index]) * (100 if index < 99 else 30), sequence=100 * index) for index in range(100)
        ]
        wires = [
            encode_fields(Kind.SOURCE, 1, 7, index, 5, 3, index, body) for index, body in enumerate(bodies)
        ]
        rows = np.zeros((100, 28 + len(wires[0])), np.uint8)
        for row, wire in zip(rows, wires, strict=True):
            row[28 : 28 + len(wire)] = np.frombuffer(wire, np.uint8)
        ports = list(range(20000, 20100))
        burst = Burst(THERE, ports, BASE_PORT, 0x21, rows, len(wires[-1]))
        lone = Outgoing(THERE, 30000, BASE_PORT, 0x40, b"not ours")
        sender.send([lone, burst, lone])
        got = received(receiver, 102)
        assert got[0] == got[-1] == Arrived(b"not ours", HERE, 30000, 0x40)
        assert got[1:-1] == [(wire, HERE, port, 0x21) for wire, port in zip(wires, ports, strict=True)]


def test_what_cannot_be_sent_is_counted() -> None:
    with underlays() as (sender, _):
        nowhere = Outgoing("255.255.255.255", 20000, BASE_PORT, 0, b"a broadcast, which is refused")
        sender.send([nowhere, nowhere])
        assert sender.unsent == 2
