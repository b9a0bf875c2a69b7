"""Flows of long ago: the newest are kept, in order, and found by number."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.live import flow_sampling, past_flows
from controller.live import flows as live
from controller.live.flow_sampling import FlowSampler
from controller.live.flows import LiveFlows
from controller.live.past_flows import PastFlows
from protocol.control import ActiveFlows, FlowEntry


@given(st.integers(0, 60), st.integers(1, 60), st.one_of(st.none(), st.integers(0, 80)))
def test_the_newest_are_kept_and_found(count: int, first: int, before: int | None) -> None:
    kept, spare = 20, 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(past_flows, "KEPT_PAST", kept)
        patch.setattr(past_flows, "SPARE_PAST", spare)
        past = PastFlows()
        for number in range(first, first + count):
            past.put({"id": number, "source": f"h{number % 3}"})
        found = [one["id"] for one in past.newest(before)]
    every = list(range(first + count - 1, first - 1, -1))
    held = [number for number in every if past.get(number) is not None]
    assert held == every[: len(held)], "the newest of all"
    assert min(count, kept) <= len(held) <= kept + spare
    assert found == [number for number in held if before is None or number < before]
    assert all(past.get(number) == {"id": number, "source": f"h{number % 3}"} for number in held)


def shown(flows: LiveFlows, **chosen: Any) -> list[dict[str, Any]]:
    return [flow for _, flow in flows.looked_at(**chosen) if flow is not None]


def test_a_flow_that_has_no_room_keeps_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "KEPT_FLOWS", 3)
    flows = LiveFlows()
    for number in range(8):
        entry = FlowEntry(
            "sender", 6, "10.128.1.1", 20000 + number, "10.128.2.1", 7000, "short", 4, 5000 + number, 5.0, 5.5
        )
        flows.take("h1", ActiveFlows(6.0, [entry]), 1006.0, {"10.128.2.1": "h3"})
        flows.step(1006.0 + number)
    every = shown(flows)
    assert [one["id"] for one in every] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert [one["bytes"] for one in every] == [5007 - index for index in range(8)]
    assert [one["state"] for one in shown(flows, before=6)] == ["ended"] * 5
    assert flows.get(5) is None
    assert flows.past(5) == every[3]
    assert {one["id"] for one in shown(flows, state="active")} <= {6, 7, 8}
    assert not shown(flows, host="h2")


class Agents:
    """What a sampler asks of agents: here nothing."""

    def __init__(self) -> None:
        self.active_flows = self

    def subscribe(self, callback: object) -> None:
        """Take who is called, and call it never."""


@pytest.mark.parametrize("host", ["h1", "h2", None])
def test_a_page_looks_at_a_bounded_number_of_flows_and_pages_have_all(
    monkeypatch: pytest.MonkeyPatch, host: str | None
) -> None:
    monkeypatch.setattr(live, "KEPT_FLOWS", 7)
    monkeypatch.setattr(flow_sampling, "MOST_LOOKED_AT", 5)
    agents: Any = Agents()
    sampler = FlowSampler(agents, lambda: False, lambda sample: None)
    flows = sampler._flows
    for number in range(40):
        source = "h2" if number % 13 == 0 else "h1"
        entry = FlowEntry(
            "sender", 6, "10.128.1.1", 20000 + number, "10.128.2.1", 7000, "short", 4, 5, 5.0, 5.5
        )
        flows.take(source, ActiveFlows(6.0, [entry]), 1006.0, {"10.128.2.1": "h3"})
        flows.step(1006.0 + number)
    found, before, pages = [], None, 0
    while True:
        rows, before = sampler.listing(before, 3, state=None, traffic_class=None, host=host)
        found += [row["id"] for row in rows]
        pages += 1
        if before is None:
            break
    assert found == [row["id"] for row in shown(flows, host=host)]
    assert len(found) == {"h1": 36, "h2": 4, None: 40}[host]
    assert pages >= 8
