"""Which flows an agent reports while they are watched; native/agent/src/flow_table.rs finds those with new packets."""

from __future__ import annotations

from protocol.control import ActiveFlows, WatchFlows
from protocol.frames import FrameReader, encode
from tests.unit.agent_relay import core
from tests.unit.inner_packets import tcp


def test_the_biggest_are_reported_and_the_rest_is_counted() -> None:
    sender = core(0)
    for port in range(1, 11):
        for _ in range(port):
            sender.packet_from_host(tcp(b"x" * 100, ports=(port, 80)), 1.0)
    reported, more = sender.active_flows(0.5, 4)
    assert [entry.source_port for entry in reported] == [10, 9, 8, 7]
    assert more == 6
    assert sender.active_flows(1.5, 4) == ([], 0)
    message = ActiveFlows(2.0, reported, more)
    assert FrameReader().feed(encode(message) + encode(WatchFlows(0.5, 32))) == [message, WatchFlows(0.5, 32)]
