"""Which flows an agent tells of while somebody watches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from host_agent.flows import STALE_RUN, FlowTable, SendFlow
from protocol.control import ActiveFlows, FrameReader, WatchFlows, encode
from tests.unit.agent_relay import core
from tests.unit.inner_packets import tcp


def flow(number: int, now: float) -> SendFlow:
    return SendFlow(bytes([6, 4]) + number.to_bytes(4, "big") * 3, number, now, last=now)


@given(st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=300), st.integers(0, 300))
def test_recent_flows_are_those_with_a_packet_since(steps: list[tuple[int, bool]], since: int) -> None:
    """A step either sees a packet of a flow or only looks the flow up (which moves it, too)."""
    table: FlowTable[int, SendFlow] = FlowTable()
    looked_up = 0
    for now, (number, packet) in enumerate(steps):
        known = table.get(number)
        if known is None:
            table.put(number, flow(number, float(now)))
        elif packet:
            known.last = float(now)
        else:
            looked_up += 1
    wanted = {one.id for one in table if one.last > since}
    found = [one.id for one in table.recent(float(since))]
    assert len(found) == len(set(found))
    if looked_up <= STALE_RUN:
        assert set(found) == wanted
    else:
        assert set(found) <= wanted


def test_the_biggest_are_told_of_and_the_rest_is_counted() -> None:
    sender = core(0)
    for port in range(1, 11):
        for _ in range(port):
            sender.packet_from_host(tcp(b"x" * 100, ports=(port, 80)), 1.0)
    told, more = sender.active_flows(0.5, 4)
    assert [entry.source_port for entry in told] == [10, 9, 8, 7]
    assert more == 6
    assert sender.active_flows(1.5, 4) == ([], 0)
    message = ActiveFlows(2.0, told, more)
    assert FrameReader().feed(encode(message) + encode(WatchFlows(0.5, 32))) == [message, WatchFlows(0.5, 32)]
