"""Flow tables are bounded, forget what is idle, and keep its record for the next report."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from host_agent.flows import IDLE_S, FlowTable, SendFlow
from host_agent.inner_packet import look
from tests.unit.inner_packets import tcp


def sending(port: int, now: float) -> SendFlow:
    flow = SendFlow(look(tcp(b"x", ports=(port, 80))).flow, port, first=now)
    flow.last = now
    flow.packets = 1
    return flow


@given(st.lists(st.integers(0, 20), max_size=80))
def test_the_longest_unseen_flow_goes_first(ports: list[int]) -> None:
    table: FlowTable[int, SendFlow] = FlowTable(limit=5)
    seen: list[int] = []
    for now, port in enumerate(ports):
        flow = table.get(port)
        assert (flow is not None) == (port in seen)
        if flow is None:
            table.put(port, sending(port, float(now)))
            if len(seen) == 5:
                seen.pop(0)
        else:
            flow.last = float(now)
            seen.remove(port)
        seen.append(port)
        assert len(table) <= 5
        assert {flow.id for flow in table} == set(seen)


def test_idle_flows_go_and_are_reported() -> None:
    table: FlowTable[int, SendFlow] = FlowTable()
    table.put(1, sending(1, 0.0))
    table.put(2, sending(2, 50.0))
    assert [flow.id for flow in table.expire(IDLE_S + 1)] == [1]
    assert {entry.source_port for entry in table.report(False)} == {1, 2}
    assert {entry.source_port for entry in table.report(True)} == {1, 2}
    assert table.report(True) == []


def test_a_key_that_comes_again_keeps_both_records() -> None:
    table: FlowTable[int, SendFlow] = FlowTable()
    table.put(1, sending(1, 0.0))
    replaced = table.put(1, sending(1, 9.0))
    assert replaced is not None
    assert replaced.first == 0.0
    assert len(table) == 1
    assert [entry.first_s for entry in table.report(True)] == [0.0, 9.0]
