"""CAPTON's scheduler: against the pseudocode, event by event, and by what the paper and the docs promise of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import capstan_native
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.capton.fabric import HostPlace, Rates, VirtualFabric, VirtualLink
from controller.capton.scheduler import Decision, Parameters, Scheduler
from tests.unit.capton_reference import ReferenceScheduler

GBPS = 10**9


def leaf_spine(
    leaves: int = 3, hosts: int = 3, core: int = 2 * GBPS, rates: tuple[int, ...] = (GBPS,)
) -> tuple[list[HostPlace], dict[str, Rates]]:
    """Build a leaf-spine fabric with access links of *rates* in turn; *core*: each leaf's, up and down."""
    places = []
    for index in range(leaves * hosts):
        rate = rates[index % len(rates)]
        places.append(HostPlace(f"h{index}", Rates(rate, rate), (f"leaf{index // hosts}",)))
    return places, {f"leaf{leaf}": Rates(core, core) for leaf in range(leaves)}


def fat_tree() -> tuple[list[HostPlace], dict[str, Rates]]:
    """Build two pods of two leaves of three hosts, over-subscribed at both tiers."""
    places = [
        HostPlace(f"h{index}", Rates(GBPS, GBPS), (f"leaf{index // 3}", f"pod{index // 6}"))
        for index in range(12)
    ]
    groups = {f"leaf{leaf}": Rates(2 * GBPS, 2 * GBPS) for leaf in range(4)}
    return places, groups | {f"pod{pod}": Rates(2 * GBPS, 3 * GBPS) for pod in range(2)}


FABRICS = (
    leaf_spine(),
    leaf_spine(core=GBPS, rates=(GBPS, 3 * GBPS, GBPS // 4)),
    leaf_spine(leaves=1, hosts=4),
    fat_tree(),
    ([HostPlace(f"h{index}", Rates(GBPS, 2 * GBPS)) for index in range(4)], {}),
)
events = st.lists(
    st.tuples(
        st.sampled_from(("request", "request", "request", "finished", "again", "expire", "end", "capacity")),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.integers(0, 40),
        st.integers(0, 10**6),
    ),
    max_size=60,
)


class Both:
    """One fabric under the pseudocode in Python, the pseudocode in Rust, and the scheduler."""

    def __init__(
        self, fabric: tuple[list[HostPlace], dict[str, Rates]], least_ppm: int, ageing: int, timeout_ns: int
    ) -> None:
        self.hosts, self.groups = fabric
        self.virtual = VirtualFabric(*fabric)
        share = Fraction(least_ppm, 10**6)
        self.reference = ReferenceScheduler(*fabric, share, ageing, Fraction(timeout_ns, 10**9))
        given = (self.virtual.groups, self.virtual.capacities, least_ppm, ageing, timeout_ns)
        self.plain = capstan_native.CaptonPlain(*given)
        self.scheduler = capstan_native.CaptonScheduler(*given)
        self.now_ns = 0

    def event(self, method: str, theirs: tuple[Any, ...], ours: tuple[Any, ...]) -> None:
        """Feed the same event to all three; assert that they decide the same and hold what the algorithm promises."""
        expected = getattr(self.reference, method)(*theirs, Fraction(self.now_ns, 10**9))
        for native in (self.plain, self.scheduler):
            decisions = getattr(native, method)(*ours, self.now_ns)
            assert len(decisions) == len(dict(decisions))
            assert dict(decisions) == expected, (method, ours, native)
        following = self.reference.next_event()
        for native in (self.plain, self.scheduler):
            assert native.next_event() == (None if following is None else following * 10**9)
        self.check()

    def check(self) -> None:
        usage = self.scheduler.usage()
        assert all(0 <= granted <= capacity for capacity, granted in usage)
        standing = self.scheduler.standing(self.now_ns)
        assert [flow for flow, *_ in standing] == [name for name, _ in self.reference.order()]
        for name, source, destination, remaining, rate in standing:
            flow = self.reference.flows[name]
            links = [self.virtual.links[link] for link in self.reference.links(flow)]
            line = min(usage[link][0] for link in links)
            assert (self.hosts[source].name, self.hosts[destination].name) == (flow.source, flow.destination)
            assert remaining == -(-flow.remaining_bits // 8)
            if not rate and line and self.reference.least_share == 1:
                # work-conserving: a flow that waits has a link without room for it
                assert any(capacity - granted < line for capacity, granted in usage_of(usage, links))


def usage_of(usage: list[tuple[int, int]], links: list[int]) -> list[tuple[int, int]]:
    return [usage[link] for link in links]


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(
    st.sampled_from(FABRICS),
    st.sampled_from((1, 300_000, 1_000_000, 1_000_000)),
    st.sampled_from((0, 0, 10**8)),
    st.sampled_from((0, 0, 30_000)),
    events,
)
def test_it_decides_as_the_pseudocode_does_at_every_event(
    fabric: tuple[list[HostPlace], dict[str, Rates]],
    least_ppm: int,
    ageing: int,
    timeout_ns: int,
    happens: list[tuple[str, int, int, int, int]],
) -> None:
    both = Both(fabric, least_ppm, ageing, timeout_ns)
    hosts, names, links = both.hosts, 0, list(both.virtual.links)
    for what, one, other, size, pause in happens:
        following = both.reference.next_event()
        if what == "end" and following is not None:
            both.now_ns = max(both.now_ns, int(following * 10**9))
            both.event("expire", (), ())
            continue
        both.now_ns += pause
        known = list(both.reference.flows)
        if what == "request":
            source, destination = one % len(hosts), other % (len(hosts) - 1)
            destination += destination >= source
            bytes_ = 1 + size * 1000
            both.event(
                "request",
                (names, hosts[source].name, hosts[destination].name, bytes_),
                (names, source, destination, bytes_),
            )
            names += 1
        elif what == "again" and known:
            name = known[one % len(known)]
            flow = both.reference.flows[name]
            ends = both.virtual.host(flow.source), both.virtual.host(flow.destination)
            bytes_ = 1 + size * 700
            both.event("request", (name, flow.source, flow.destination, bytes_), (name, *ends, bytes_))
        elif what == "finished":
            name = known[one % len(known)] if known else 7
            both.event("finished", (name,), (name,))
        elif what == "expire":
            both.event("expire", (), ())
        elif what == "capacity":
            link = links[one % len(links)]
            rate = both.virtual.capacities[both.virtual.links[link]] * (other % 5) // 4
            both.event("capacity", (link, rate), (both.virtual.links[link], rate))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from(FABRICS), st.sampled_from((0, 10**7)))
def test_every_flow_ends_when_the_work_could_be_done(
    seed: int, fabric: tuple[list[HostPlace], dict[str, Rates]], ageing: int
) -> None:
    """And never sooner than its size takes at its line rate; all are done when the busiest link could have done it."""
    rng = np.random.default_rng(seed)
    hosts = [host.name for host in fabric[0]]
    scheduler = Scheduler(VirtualFabric(*fabric), Parameters(ageing_bytes_per_s=ageing))
    granted: dict[int, list[float]] = {}
    work = 0.0
    for flow in range(60):
        source, destination = rng.choice(hosts, 2, replace=False)
        size = int(rng.integers(1, 10**6))
        work += size * 8 / (GBPS / 4)
        for name, rate, _ in scheduler.request(flow, source, destination, size, now=0.0):
            granted.setdefault(name, []).append(rate)
    now, steps = 0.0, 0
    while (following := scheduler.next_event()) is not None:
        assert following >= now
        now, steps = following, steps + 1
        for name, rate, _ in scheduler.expire(now):
            granted.setdefault(name, []).append(rate)
        assert steps < 1000
    assert len(scheduler) == 0
    assert all(granted[flow][-1] == 0 and max(granted[flow]) > 0 for flow in range(60))
    assert now <= work


def test_one_sending_and_one_receiving_flow_a_host_smallest_first() -> None:
    scheduler = Scheduler(VirtualFabric(*leaf_spine(core=3 * GBPS)))
    assert scheduler.request(1, "h0", "h3", 3000, now=0.0) == [Decision(1, GBPS)]
    assert scheduler.request(2, "h0", "h4", 5000, now=0.0) == []  # its sender sends already
    assert scheduler.request(3, "h1", "h3", 5000, now=0.0) == []  # its receiver receives already
    assert scheduler.request(4, "h1", "h3", 1000, now=0.0) == [
        Decision(1, 0),
        Decision(4, GBPS),
        Decision(2, GBPS),
    ]
    assert [flow.flow for flow in scheduler.flows(0.0)] == [4, 1, 2, 3]


def test_remaining_sizes_decide_not_sizes() -> None:
    """A flow of 10 kB that has sent 9 kB goes before one of 2 kB (Figure 6: remaining sizes are updated first)."""
    scheduler = Scheduler(VirtualFabric(*leaf_spine()))
    scheduler.request(1, "h0", "h3", 10_000, now=0.0)
    assert scheduler.request(2, "h0", "h4", 2000, now=72e-6) == []
    assert scheduler.request(3, "h0", "h5", 900, now=72e-6) == [Decision(1, 0), Decision(3, GBPS)]
    assert scheduler.flows(72e-6)[1].remaining_bytes == 1000


def test_the_core_is_over_subscribed_but_not_within_a_rack() -> None:
    scheduler = Scheduler(VirtualFabric(*leaf_spine(core=GBPS)))
    scheduler.request(1, "h0", "h3", 1000, now=0.0)
    assert scheduler.request(2, "h1", "h6", 2000, now=0.0) == []  # leaf0's uplinks are full
    assert scheduler.request(3, "h1", "h2", 3000, now=0.0) == [Decision(3, GBPS)]
    assert scheduler.links()[VirtualLink("leaf0", "up")] == (GBPS, GBPS)
    assert scheduler.finished(1, 1e-6) == [Decision(3, 0), Decision(2, GBPS)]


def test_failed_links_lower_the_capacity_at_once() -> None:
    scheduler = Scheduler(VirtualFabric(*leaf_spine(core=2 * GBPS)))
    scheduler.request(1, "h0", "h3", 1000, now=0.0)
    scheduler.request(2, "h1", "h4", 2000, now=0.0)
    up = VirtualLink("leaf0", "up")
    assert scheduler.capacity(up, GBPS, 0.0) == [Decision(2, 0)]
    assert scheduler.capacity(up, GBPS // 2, 0.0) == [Decision(1, GBPS // 2)]
    assert scheduler.capacity(up, 0, 0.0) == [Decision(1, 0)]
    assert sorted(scheduler.capacity(up, 2 * GBPS, 0.0)) == [Decision(1, GBPS), Decision(2, GBPS)]


def test_a_fast_host_sends_to_several_slow_ones() -> None:
    """And, where a part of its line rate will do, to a fast one with the rest."""
    fabric = leaf_spine(leaves=1, hosts=6, rates=(GBPS, GBPS // 4, GBPS // 4))
    scheduler = Scheduler(VirtualFabric(*fabric), Parameters(least_share=0.5))
    assert scheduler.request(1, "h0", "h1", 1000, now=0.0) == [Decision(1, GBPS // 4)]
    assert scheduler.request(2, "h0", "h2", 2000, now=0.0) == [Decision(2, GBPS // 4)]
    assert scheduler.request(3, "h0", "h3", 3000, now=0.0) == [Decision(3, GBPS // 2)]
    whole = Scheduler(VirtualFabric(*fabric))
    whole.request(1, "h0", "h1", 1000, now=0.0)
    assert whole.request(3, "h0", "h3", 3000, now=0.0) == []


def test_ties_go_to_the_earlier_request_and_ageing_ends_starvation() -> None:
    scheduler = Scheduler(VirtualFabric(*leaf_spine()))
    scheduler.request(1, "h0", "h3", 1000, now=0.0)
    assert scheduler.request(2, "h1", "h3", 1000, now=0.0) == []

    def waits(ageing: int) -> float:
        """Return the seconds that a flow of 100 kB waits while one of 10 kB begins as soon as one before has ended."""
        scheduler = Scheduler(VirtualFabric(*leaf_spine()), Parameters(ageing_bytes_per_s=ageing))
        now = 0.0
        scheduler.request(0, "h0", "h3", 10_000, now=now)
        scheduler.request(10**6, "h1", "h3", 100_000, now=now)
        for flow in range(1, 500):
            scheduler.request(flow, "h0", "h3", 10_000, now=now + 1e-6)
            now = scheduler.next_event() or 0.0
            if Decision(10**6, GBPS) in scheduler.expire(now):
                return now
        return float("inf")

    assert waits(0) == float("inf")
    assert waits(10**8) == pytest.approx(90_000 / 10**8, abs=2e-4)


def test_a_flow_that_says_nothing_loses_its_grant_by_the_finish_time_out() -> None:
    scheduler = Scheduler(VirtualFabric(*leaf_spine()), Parameters(finish_timeout_s=0.01))
    scheduler.request(1, "h0", "h3", 125_000, now=0.0)  # 1 ms
    scheduler.request(2, "h0", "h4", 250_000, now=0.0)
    following = scheduler.next_event()
    assert following == pytest.approx(0.011)
    assert scheduler.expire(0.0109) == []
    assert scheduler.expire(following) == [Decision(1, 0), Decision(2, GBPS)]
    assert 1 not in scheduler
    assert 2 in scheduler


def test_what_cannot_be_is_refused() -> None:
    scheduler = Scheduler(VirtualFabric(*leaf_spine()))
    with pytest.raises(ValueError, match="host 'h12' is not known; did you mean"):
        scheduler.request(1, "h12", "h0", 5, now=0.0)
    with pytest.raises(ValueError, match="no flow goes from host 0 to host 0"):
        scheduler.request(1, "h0", "h0", 5, now=0.0)
    scheduler.request(1, "h0", "h1", 5, now=0.0)
    with pytest.raises(ValueError, match="flow 1 has other ends"):
        scheduler.request(1, "h0", "h2", 5, now=0.0)
    with pytest.raises(ValueError, match="there is no link up of 'leaf9'"):
        scheduler.capacity(VirtualLink("leaf9", "up"), 5, 0.0)
    with pytest.raises(ValueError, match=r"least share 0e-6 \(1\.\.1000000\)"):
        Scheduler(VirtualFabric(*leaf_spine()), Parameters(least_share=0))
    places, groups = leaf_spine()
    with pytest.raises(ValueError, match="the capacity of 'leaf2' is not known"):
        VirtualFabric(places, {name: groups[name] for name in ("leaf0", "leaf1")})
    with pytest.raises(ValueError, match="two hosts have the same name"):
        VirtualFabric([*places, places[0]], groups)
