"""HyLine's scheduler: as CAPTON's where there is one path, and who joins moves no flow to another path."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.capton.admission import AdmissionControl, FlowScheduler
from controller.capton.fabric import HostPlace, Rates, VirtualFabric
from controller.capton.scheduler import Parameters, Scheduler
from controller.capton.single_path import Pair, SinglePath, SinglePathScheduler
from protocol.admission import Request

TICK_S = 1 / 512
"""A byte at `RATE`; whole in both schedulers' numbers."""
RATE = 8 * 512
TIMEOUT_S = 40 * TICK_S

events = st.lists(
    st.tuples(
        st.sampled_from(("request", "request", "again", "finished", "expire", "expire")),
        st.integers(0, 11),
        st.integers(0, 60),
        st.integers(0, 50),
    ),
    max_size=50,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(events)
def test_within_a_leaf_it_decides_as_the_scheduler_does(happens: list[tuple[str, int, int, int]]) -> None:
    hosts = tuple(HostPlace(f"h{number}", Rates(RATE, RATE), ("l1",)) for number in range(4))
    pairs = [(a.name, b.name) for a in hosts for b in hosts if a is not b]
    parameters = Parameters(finish_timeout_s=TIMEOUT_S)
    single = SinglePathScheduler(hosts, {}, parameters)
    several = Scheduler(VirtualFabric(hosts, {"l1": Rates(RATE, RATE)}), parameters)
    both: tuple[SinglePathScheduler, Scheduler] = single, several
    asked: dict[int, Pair] = {}
    now = 0.0
    for what, which, size, pause in happens:
        now += pause * TICK_S
        known = [flow.flow for flow in several.flows(now)]
        flow = len(asked) if what == "request" or not known else known[which % len(known)]
        if what in ("request", "again"):
            ends = asked.setdefault(flow, pairs[which])
            decided = [each.request(flow, *ends, 1 + size, now=now) for each in both]
        elif what == "finished":
            decided = [each.finished(flow, now) for each in both]
        else:
            following = several.next_event()
            now = now if following is None else max(now, round(following / TICK_S) * TICK_S)
            decided = [each.expire(now) for each in both]
        assert sorted(decided[0]) == sorted(decided[1])
        assert single.flows(now) == several.flows(now)
        following = several.next_event()
        assert single.next_event() == (following and pytest.approx(following, abs=1e-6))


@pytest.mark.parametrize("others", [0, 20])
def test_a_silent_host_loses_its_grant_whatever_others_do(others: int) -> None:
    hosts = tuple(HostPlace(f"h{number}", Rates(RATE, RATE), ("l1",)) for number in range(4))
    control = AdmissionControl(
        SinglePathScheduler(hosts, {}, Parameters(finish_timeout_s=TIMEOUT_S)),
        {f"10.0.0.{number}": f"h{number}" for number in range(4)},
    )
    control.receive("h0", Request(1, 7, "10.0.0.1", 10), 0.0)
    for number in range(others):
        control.receive("h2", Request(1 + number, 8, "10.0.0.3", 1000), number * TICK_S)
    due = control.get_timer()
    assert due == 10 * TICK_S + TIMEOUT_S
    [(host, stop)] = control.handle_timer(due)
    assert (host, stop.flow) == ("h0", 7)
    assert control.counts["flows_expired"] == 1


def crossed(hosts: int) -> tuple[tuple[HostPlace, ...], dict[Pair, tuple[SinglePath, ...]]]:
    """Build two leaves with so many hosts each, and four paths each way."""
    places = tuple(
        HostPlace(f"h{leaf}{number}", Rates(RATE, RATE), (f"l{leaf}",))
        for leaf in (1, 2)
        for number in range(hosts)
    )
    paths: dict[Pair, tuple[SinglePath, ...]] = {
        (f"l{a}", f"l{b}"): tuple(
            SinglePath(10 + spine, ((f"l{a}-s{spine}", RATE), (f"s{spine}-l{b}", RATE))) for spine in range(4)
        )
        for a, b in ((1, 2), (2, 1))
    }
    return places, paths


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(0, 3), st.booleans(), st.integers(1, 200), st.integers(0, 9)
        ),
        max_size=16,
    ),
    st.sampled_from((1.0, 0.25)),
    st.sampled_from((0, 2000)),
)
def test_a_host_that_joins_changes_nothing_for_flows_that_are_granted(
    flows: list[tuple[int, int, bool, int, int]], least_share: float, ageing: int
) -> None:
    places, paths = crossed(4)
    addresses = {f"10.0.{place.name[1]}.{place.name[2]}": place.name for place in places}
    parameters = Parameters(least_share, ageing, finish_timeout_s=60.0)
    control = AdmissionControl(SinglePathScheduler(places, paths, parameters), addresses)
    now = 0.0
    for number, (sender, receiver, back, size, pause) in enumerate(flows):
        source, destination = (2, 1) if back else (1, 2)
        now += pause * TICK_S
        request = Request(1 + number, number, f"10.0.{destination}.{receiver}", size)
        control.receive(f"h{source}{sender}", request, now)
    control.handle_timer(now)
    before = [flow.active for flow in control.standing(now)]
    more, paths = crossed(5)
    assert control.replace(SinglePathScheduler(more, paths, parameters), addresses, now) == []
    after = [flow.active for flow in control.standing(now)]
    if ageing:  # what is left is taken over in whole bytes, so two flows that are level may change places
        after.sort()
        before.sort()
    assert [(flow.flow, flow.rate_bps, flow.stamp) for flow in after] == [
        (flow.flow, flow.rate_bps, flow.stamp) for flow in before
    ]


@pytest.mark.parametrize("kind", ["single path", "all paths"])
def test_flows_keep_their_age_under_another_scheduler(kind: str) -> None:
    hosts = tuple(HostPlace(f"h{number}", Rates(RATE, RATE), ("l1",)) for number in range(3))
    parameters = Parameters(ageing_bytes_per_s=1000)

    def scheduler() -> FlowScheduler:
        if kind == "single path":
            return SinglePathScheduler(hosts, {}, parameters)
        return Scheduler(VirtualFabric(hosts, {"l1": Rates(RATE, RATE)}), parameters)

    addresses = {f"10.0.0.{number}": f"h{number}" for number in range(3)}
    control = AdmissionControl(scheduler(), addresses)
    control.receive("h0", Request(1, 1, "10.0.0.2", 10_000), 0.0)
    control.receive("h1", Request(1, 2, "10.0.0.2", 3000), 10.0)  # fewer than the first has left, but younger
    rates = [flow.active.rate_bps for flow in control.standing(10.0)]
    assert rates == [RATE, 0]
    assert control.replace(scheduler(), addresses, 10.0) == []
    assert [(flow.active.source, flow.active.rate_bps) for flow in control.standing(10.0)] == [
        ("h0", RATE),
        ("h1", 0),
    ]
