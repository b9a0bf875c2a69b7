"""What waits for the control plane: bounded, LLDP first, nothing that a switch itself says lost or out of order."""

from __future__ import annotations

import selectors
import socket
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.fabric.switch_data import Port
from controller.openflow import backlog
from controller.openflow.backlog import Backlog, TooManyEventsError, Waiting
from controller.openflow.connection import SwitchConnection
from controller.openflow.cookies import Rule
from controller.openflow.session_events import PacketIn, PortStatus, SessionEvent

LLDP = PacketIn(1, Rule.LLDP, b"lldp")
ARP = PacketIn(1, Rule.ARP, b"arp")


@pytest.fixture(scope="module")
def connection() -> Iterator[SwitchConnection]:
    ours, theirs = socket.socketpair()
    with (
        selectors.DefaultSelector() as selector,
        theirs,
        ours,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        caller = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        made = SwitchConnection(accepted, "test", selector, 0.0, counters=Counter())
        yield made
        made.close()
        caller.close()


def change(number: int) -> PortStatus:
    return PortStatus(Port(number, "p", "02:00:00:00:00:01", True))


@given(st.lists(st.sampled_from([LLDP, ARP]) | st.integers(1, 9).map(change)))
def test_everything_comes_out_and_other_packets_last(
    connection: SwitchConnection, events: list[SessionEvent]
) -> None:
    waiting = Backlog(Counter())
    for event in events:
        waiting.add(Waiting(connection, event, 0.0))
    out = [waiting.take().event for _ in range(len(waiting))]
    first = [event for event in events if event is not ARP]
    assert out == first + [ARP] * (len(events) - len(first))
    assert len(waiting) == 0


def test_what_is_too_much_is_dropped_and_counted(
    connection: SwitchConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "MOST_LLDP", 5)
    monkeypatch.setattr(backlog, "MOST_OTHERS", 7)
    monkeypatch.setattr(backlog, "MOST_EVENTS", 9)
    counters: Counter[str] = Counter()
    waiting = Backlog(counters)
    for _ in range(3):
        for number in range(9):
            waiting.add(Waiting(connection, change(number), 0.0))
        with pytest.raises(TooManyEventsError):
            waiting.add(Waiting(connection, change(0), 0.0))
        for _ in range(20):
            waiting.add(Waiting(connection, LLDP, 0.0))
            waiting.add(Waiting(connection, ARP, 0.0))
        assert len(waiting) == 5 + 7 + 9
        while waiting:
            waiting.take()
    assert counters == {"dropped-lldp": 3 * 15, "dropped-packet-ins": 3 * 13}
