"""Flows as agents report them: totals against an independent count, whatever is forgotten, used again or left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.live import flows as module
from controller.live.flows import ENDED_S, KEPT_STEPS, SHOWN, LiveFlows
from protocol.control import ActiveFlows, FlowEntry

NAMES = {"10.128.1.1": "h1", "10.128.2.1": "h3"}


def entry(side: str = "sender", **more: object) -> FlowEntry:
    plain = FlowEntry(side, 6, "10.128.1.1", 20000, "10.128.2.1", 7000, "short", 0, 0, 5.0, 5.5)
    return replace(plain, **more)  # type: ignore[arg-type]


def reported(*entries: FlowEntry, now: float = 6.0, more: int = 0) -> ActiveFlows:
    return ActiveFlows(now, list(entries), more)


def test_both_sides_of_a_flow_are_one() -> None:
    flows = LiveFlows()
    flows.take("h1", reported(entry(packets=10, bytes=14000, repairs=2, priority=3)), 1006.0, NAMES)
    flows.take(
        "h3",
        reported(entry("receiver", packets=9, bytes=12600, recovered=1, lost=1, paths={"5": 6, "6": 3}, first_s=105.0,
                   last_s=105.4), now=106.0),
        1006.0,
        NAMES,
    )  # fmt: skip
    (flow,) = flows.step(1006.5)["flows"]
    assert (flow["source"], flow["destination"], flow["protocol"]) == ("h1", "h3", "tcp")
    assert (flow["bytes"], flow["received_bytes"], flow["packets"], flow["repairs"]) == (14000, 12600, 10, 2)
    assert (flow["recovered"], flow["lost"], flow["paths"]) == (1, 1, {"5": 6, "6": 3})
    assert (flow["started_at"], flow["last_at"]) == (1005.0, 1005.5)
    assert (flow["state"], flow["priority"]) == ("active", 3)
    assert flow["bits_per_s"] == round(14000 * 8 / 1.5, 1), "over its life, for no client watched before"


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("5678"), st.integers(0, 50), max_size=4),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_totals_are_what_was_sent_whenever_agents_forget(
    steps: list[tuple[dict[str, int], bool, bool]],
) -> None:
    """As an agent counts: from the last ``forget`` on. A packet more than it forgot shows that it did."""
    flows = LiveFlows()
    truth: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    reported_before = 0
    for index, (paths, forget, step) in enumerate(steps):
        counted.update(paths)
        truth.update(paths)
        packets = sum(counted.values())
        kept = {stamp: count for stamp, count in counted.items() if count}
        flows.take(
            "h3",
            reported(entry("receiver", packets=packets, bytes=packets * 1000, paths=kept)),
            1000.0,
            NAMES,
        )
        reported_before = packets
        if step:
            flows.step(1000.0 + index)
        if forget and reported_before:
            counted.clear()
            flows.take("h3", reported(entry("receiver", packets=0, bytes=0)), 1000.0, NAMES)
    flow = flows.get(1)
    assert flow is not None
    view = flow.view()
    assert Counter(view["paths"]) == +truth
    assert view["received_bytes"] == 1000 * sum(truth.values()) == view["bytes"]


def test_steps_sum_to_the_totals() -> None:
    flows = LiveFlows()
    for index in range(1, 6):
        flows.take("h1", reported(entry(packets=index * 3, bytes=index * 4000)), 1000.0 + index, NAMES)
        flows.take(
            "h3",
            reported(entry("receiver", packets=index * 2, paths={"5": index * 2})),
            1000.0 + index,
            NAMES,
        )
        flows.step(1000.0 + index)
    flow = flows.get(1)
    assert flow is not None
    assert sum(step["bytes"] for step in flow.steps) == 20000
    assert [step["paths"] for step in flow.steps] == [{"5": 2}] * 5
    assert flow.steps[-1]["at"] == 1005.0
    assert flow.bits_per_s == 4000 * 8


def test_flows_end_though_the_clock_was_set_back() -> None:
    flows = LiveFlows()
    flows.take("h1", reported(entry(packets=10, bytes=14000)), 5006.0, NAMES)
    flows.step(5006.5)
    flows.take("h1", reported(entry(packets=20, bytes=28000, last_s=6.5), now=7.0), 1007.0, NAMES)
    (flow,) = flows.step(1007.0)["flows"]
    assert (flow["state"], flow["bits_per_s"]) == ("active", 14000 * 8)
    assert 0 < flow["last_at"] - flow["started_at"] < 2
    (flow,) = flows.step(1007.0 + 2 * ENDED_S)["flows"]
    assert (flow["state"], flow["bits_per_s"]) == ("ended", 0.0)


def test_a_5_tuple_that_is_used_again_is_another_flow() -> None:
    flows = LiveFlows()
    flows.take("h1", reported(entry(packets=5, bytes=5000)), 1006.0, NAMES)
    flows.take("h3", reported(entry("receiver", packets=4, first_s=105.0)), 1006.0, NAMES)
    flows.step(1006.0)
    flows.take("h1", reported(entry(packets=2, bytes=2000, first_s=8.0)), 1009.0, NAMES)
    flows.take(
        "h3", reported(entry("receiver", packets=5, first_s=105.0)), 1009.0, NAMES
    )  # a late one of the first
    flows.take("h3", reported(entry("receiver", packets=1, first_s=108.0)), 1009.0, NAMES)
    flows.step(1009.0)
    first, second = flows.get(1), flows.get(2)
    assert first is not None
    assert second is not None
    assert (first.view()["bytes"], first.sides["receiver"].totals["packets"]) == (5000, 5)
    assert (second.view()["bytes"], second.sides["receiver"].totals["packets"]) == (2000, 1)
    assert flows.get(3) is None


def test_the_receiver_may_report_first() -> None:
    flows = LiveFlows()
    flows.take(
        "h3", reported(entry("receiver", packets=4, first_s=105.0, traffic_class="short")), 1006.0, NAMES
    )
    flows.take("h1", reported(entry(packets=5, bytes=5000, traffic_class="long")), 1006.0, NAMES)
    (flow,) = flows.step(1006.0)["flows"]
    assert (flow["source"], flow["packets"], flow["traffic_class"]) == ("h1", 5, "long")


def test_a_flow_of_which_nothing_is_reported_has_ended_and_is_reported_so_once() -> None:
    flows = LiveFlows()
    flows.take("h1", reported(entry(packets=5, bytes=5000)), 1006.0, NAMES)
    assert [one["state"] for one in flows.step(1006.0)["flows"]] == ["active"]
    assert flows.step(1006.0 + ENDED_S - 1)["flows"] == []
    (ended,) = flows.step(1006.1 + ENDED_S)["flows"]
    assert (ended["state"], ended["bits_per_s"], ended["paths_now"]) == ("ended", 0.0, {})
    assert flows.step(1010.0 + ENDED_S)["flows"] == []
    flows.take("h1", reported(entry(packets=6, bytes=6000, last_s=15.0), now=15.0), 1015.0, NAMES)
    assert [one["state"] for one in flows.step(1015.0)["flows"]] == ["active"]


def test_samples_are_bounded_and_say_what_they_leave_out() -> None:
    flows = LiveFlows()
    many = [entry(source_port=port, packets=1, bytes=port) for port in range(1, SHOWN + 11)]
    flows.take("h1", reported(*many, more=7), 1006.0, NAMES)
    sample = flows.step(1006.0)
    assert len(sample["flows"]) == SHOWN
    assert sample["more"] == 17
    assert sample["flows"][0]["source_port"] == SHOWN + 10, "the fastest first"


def test_memory_is_bounded() -> None:
    flows = LiveFlows()
    module_limit = module.KEPT_FLOWS
    for batch in range(0, module_limit + 100, 100):
        entries = [
            entry(source_port=1 + (batch + i) % 65000, first_s=float(batch + i), packets=1)
            for i in range(100)
        ]
        flows.take("h1", reported(*entries), 1006.0, NAMES)
    flows.step(1006.0)
    assert [number for number, _ in flows.looked_at()] == list(range(module_limit + 100, 0, -1))
    assert flows.get(1) is None
    flow = flows.get(module_limit + 100)
    assert flow is not None
    for index in range(KEPT_STEPS + 5):
        flows.take(
            "h1",
            reported(entry(source_port=flow.key[2], first_s=flow.sides["sender"].first_s, packets=2 + index)),
            1007.0,
            NAMES,
        )
        flows.step(1007.0 + index)
    assert len(flow.steps) == KEPT_STEPS


def test_a_flow_whose_step_fails_stops_no_other() -> None:
    """What failed stayed, and every later step failed by it: no live flows until the controller's restart."""
    flows = LiveFlows()
    flows.take("h1", reported(entry(packets=1, bytes=10**400)), 1006.0, NAMES)
    flows.take("h1", reported(entry(packets=1, bytes=4000, source_port=9)), 1006.0, NAMES)
    assert [one["source_port"] for one in flows.step(1006.0)["flows"]] == [9]
    flows.take("h1", reported(entry(packets=2, bytes=8000, source_port=9)), 1006.5, NAMES)
    (flow,) = flows.step(1006.5)["flows"]
    assert flow["bytes"] == 8000


def test_timelines_have_a_size_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as there is room each flow has all of its steps; then its oldest make room for its newest."""
    monkeypatch.setattr(module, "MOST_COUNTS", 5_000)
    flows = LiveFlows()
    for index in range(100):
        paths = {str(stamp): index + 1 for stamp in range(1, 21)}
        several = [
            entry("receiver", source_port=port, packets=index + 1, paths=paths, first_s=105.0)
            for port in range(1, 11)
        ]
        flows.take("h3", reported(*several), 1006.0 + index, NAMES)
        flows.step(1006.0 + index)
        held = sum(
            12 + len(step["paths"])
            for port in range(1, 11)
            if (flow := flows.get(port))
            for step in flow.steps
        )
        assert held <= 5_000 + 10 * 32
    newest = [flow.steps[-1]["at"] for port in range(1, 11) if (flow := flows.get(port))]
    assert newest == [1105.0] * 10
    monkeypatch.setattr(module, "MOST_COUNTS", 100)
    flows.take("h3", reported(*several), 1107.0, NAMES)
    flows.step(1107.0)
    assert flows.get(1) is None
    assert flows.past(1) is not None, "the oldest is a row"
