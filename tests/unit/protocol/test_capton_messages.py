"""CAPTON's messages: the bytes, and what becomes of agents and controller where messages are lost, doubled and late."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.capton.admission import AdmissionControl
from controller.capton.fabric import HostPlace, Rates, VirtualFabric, VirtualLink
from controller.capton.scheduler import Parameters, Scheduler
from protocol.admission import AdmissionMessage, AdmissionPolicy, Finished, Grant, Request, Stop, newer
from protocol.control import ControlError, FrameReader, Ping, encode
from tests.unit.admission_requests import Requests

GBPS = 10**9
POLICY = AdmissionPolicy()
u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
messages = st.one_of(
    st.builds(Request, u32, u32, st.ip_addresses(v=4).map(str), u64),
    st.builds(Finished, u32, u32),
    st.builds(Grant, u32, u32, u32, u64),
    st.builds(Stop, u32, u32, u32),
)


@given(st.lists(messages, max_size=8), st.integers(1, 40))
def test_frames_are_compact_and_come_through_in_any_pieces(sent: list[AdmissionMessage], piece: int) -> None:
    stream = b"".join(encode(message) for message in sent) + encode(Ping(7))
    reader, got = FrameReader(), []
    for at in range(0, len(stream), piece):
        got += reader.feed(stream[at : at + piece])
    assert got == [*sent, Ping(7)]
    assert all(len(encode(message)) <= 28 for message in sent)


@pytest.mark.parametrize("body", [b"", b"\0", b"\5" + bytes(8), b"\2" + bytes(9), b"\1" + bytes(19)])
def test_a_frame_that_is_none_ends_the_connection(body: bytes) -> None:
    with pytest.raises(ControlError, match="are no admission message"):
        FrameReader().feed((len(body) + 1).to_bytes(4, "big") + b"\x43" + body)


def test_sequence_numbers_are_compared_round_the_corner() -> None:
    assert newer(0, None)
    assert newer(3, 2**32 - 3)
    assert not newer(2**32 - 3, 3)
    assert not newer(5, 5)


HOSTS = {f"10.0.0.{index}": f"h{index}" for index in range(6)}


def admission(timeout_s: float = 0.05) -> AdmissionControl:
    rates = Rates(GBPS, GBPS)
    places = [HostPlace(name, rates, (f"leaf{index // 2}",)) for index, name in enumerate(HOSTS.values())]
    fabric = VirtualFabric(places, {f"leaf{leaf}": rates for leaf in range(3)})
    return AdmissionControl(Scheduler(fabric, Parameters(finish_timeout_s=timeout_s)), HOSTS)


class World:
    """Agents and a controller; flows send what they are granted. Messages are harmed until `calm_at`."""

    def __init__(self, rng: np.random.Generator, loss: float, calm_at: float) -> None:
        self.rng, self.loss, self.calm_at = rng, loss, calm_at
        self.controller = admission()
        self.agents = {host: Requests(POLICY) for host in HOSTS.values()}
        self.sizes: dict[tuple[str, int], float] = {}
        """Bytes left, by host and flow."""
        self.on_the_way: list[tuple[float, int, str, bool, AdmissionMessage]] = []
        self.now = 0.0
        self.posted = 0

    def post(self, host: str, to_agent: bool, message: AdmissionMessage) -> None:
        copies = 1
        if self.now < self.calm_at:
            copies = int(self.rng.choice([0, 1, 2], p=[self.loss, 1 - 1.5 * self.loss, self.loss / 2]))
        for _ in range(copies):
            self.posted += 1
            delay = float(self.rng.exponential(0.003)) if self.now < self.calm_at else 0.0
            heapq.heappush(self.on_the_way, (self.now + delay, self.posted, host, to_agent, message))

    def begin(self, host: str, flow: int, destination: str, size: int) -> None:
        self.sizes[host, flow] = size
        self.agents[host].ask(flow, destination, size, self.now)

    def step(self, seconds: float) -> None:
        for (host, flow), left in list(self.sizes.items()):
            agent = self.agents[host]
            rate = min(agent.rate_bps(flow), GBPS)
            left -= rate / 8 * seconds
            if left <= 0:
                del self.sizes[host, flow]
                agent.end(flow)
            else:
                self.sizes[host, flow] = left
                agent.left(flow, math.ceil(left))
        self.now += seconds
        timer = self.controller.get_timer()
        if timer is not None and timer <= self.now:
            self.answer(self.controller.handle_timer(self.now))
        for host, agent in self.agents.items():
            due = agent.get_timer()
            if due is not None and due <= self.now:
                agent.handle_timer(self.now)
            for message in agent.messages_to_send():
                self.post(host, False, message)
        while self.on_the_way and self.on_the_way[0][0] <= self.now:
            _, _, host, to_agent, message = heapq.heappop(self.on_the_way)
            if to_agent:
                assert isinstance(message, Grant | Stop)
                self.agents[host].decided(message, self.now)
            else:
                assert isinstance(message, Request | Finished)
                self.answer(self.controller.receive(host, message, self.now))

    def answer(self, answers: list[tuple[str, Grant | Stop]]) -> None:
        for host, message in answers:
            self.post(host, True, message)

    def rates(self) -> dict[tuple[str, int], float]:
        return {key: self.agents[key[0]].rate_bps(key[1]) for key in self.sizes}


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.floats(0, 0.5))
def test_whatever_is_lost_doubled_and_late_every_flow_ends_and_both_sides_agree_again(
    seed: int, loss: float
) -> None:
    rng = np.random.default_rng(seed)
    world = World(rng, loss, calm_at=0.3)
    addresses = list(HOSTS)
    for flow in range(24):
        source, destination = rng.choice(6, 2, replace=False)
        world.begin(
            HOSTS[addresses[source]], flow, addresses[destination], int(rng.integers(20_000, 3_000_000))
        )
        world.step(0.005)
    # endless ones, one from each host, are still there at the end
    for index in range(6):
        world.begin(f"h{index}", 100 + index, addresses[(index + 1) % 6], 10**12)
    while world.now < 3.0:
        world.step(0.005)
    assert set(world.sizes) == {(f"h{index}", 100 + index) for index in range(6)}
    standing = world.controller.standing(world.now)
    assert len(standing) == 6
    granted = {flow.active.source: flow.active.rate_bps for flow in standing}
    assert {host: rate for (host, _), rate in world.rates().items()} == granted
    assert sum(rate > 0 for rate in granted.values()) >= 3


def test_a_lost_stop_is_made_good_by_the_next_request() -> None:
    agent, controller = Requests(POLICY), admission()
    agent.ask(1, "10.0.0.2", 10**6, 0.0)
    (request,) = agent.messages_to_send()
    ((_, grant),) = controller.receive("h0", request, 0.0)
    assert agent.decided(grant, 0.0)
    assert agent.rate_bps(1) == GBPS
    stopped = controller.receive("h1", Request(1, 1, "10.0.0.2", 1000), 0.0)
    assert [(host, type(message)) for host, message in stopped] == [("h0", Stop), ("h1", Grant)]
    assert agent.get_timer() == POLICY.refresh_s  # the stop is lost
    assert agent.handle_timer(POLICY.refresh_s) == []
    (again,) = agent.messages_to_send()
    ((_, stop),) = controller.receive("h0", again, POLICY.refresh_s)
    assert agent.decided(stop, POLICY.refresh_s)
    assert agent.rate_bps(1) == 0
    assert not agent.decided(grant, POLICY.refresh_s)  # it was late
    assert agent.rate_bps(1) == 0


def test_a_late_request_does_not_bring_a_flow_back() -> None:
    controller = admission()
    assert controller.receive("h0", Finished(2, 1), 0.0) == []
    assert controller.receive("h0", Request(1, 1, "10.0.0.2", 1000), 0.0) == []
    assert controller.counts["messages_late"] == 1
    assert controller.get_timer() is None


def test_without_a_controller_flows_go_unscheduled_and_say_so_until_it_answers() -> None:
    agent, controller = Requests(POLICY), admission()
    agent.ask(1, "10.0.0.2", 10**6, 0.0)
    now, freed = 0.0, []
    while not freed:
        now = agent.get_timer() or 0.0
        assert agent.rate_bps(1) == 0
        freed = agent.handle_timer(now)
    assert (now, freed) == (pytest.approx(POLICY.fail_safe_s), [1])
    assert agent.rate_bps(1) == math.inf
    assert agent.counts["flows_unscheduled_by_fail_safe"] == 1
    requests = agent.messages_to_send()
    assert len(requests) >= POLICY.fail_safe_s / POLICY.retry_s
    (last,) = [message for _, message in controller.receive("h0", requests[-1], now)]
    assert agent.decided(last, now)
    assert agent.rate_bps(1) == GBPS


def test_a_controller_that_began_anew_learns_all_flows() -> None:
    agent, first, second = Requests(POLICY), admission(), admission()
    agent.ask(1, "10.0.0.2", 10**6, 0.0)
    agent.ask(2, "10.0.0.3", 10**5, 0.0)
    for controller in (first, second):
        agent.connected(0.0)
        answers = [
            answer
            for message in agent.messages_to_send()
            for answer in controller.receive("h0", message, 0.0)
        ]
        for _, message in answers:
            agent.decided(message, 0.0)
        assert (agent.rate_bps(1), agent.rate_bps(2)) == (0, GBPS)


def test_an_agent_that_dies_holding_a_grant_frees_its_links() -> None:
    controller = admission()
    controller.receive("h0", Request(1, 1, "10.0.0.2", 10**6), 0.0)
    controller.receive("h1", Request(1, 1, "10.0.0.3", 10**7), 0.0)
    assert controller.gone("h0", 0.001) == [("h1", Grant(3, 1, 1, GBPS))]
    ((_, granted),) = controller.receive("h0", Request(1, 1, "10.0.0.2", 10**5), 0.002)[-1:]
    assert isinstance(granted, Grant)  # it is back, and numbers its flows and messages from 1


def test_a_host_that_says_too_little_loses_its_grant() -> None:
    controller = admission(timeout_s=0.01)
    controller.receive("h0", Request(1, 1, "10.0.0.2", 1250), 0.0)  # it has 1 MB
    controller.receive("h1", Request(1, 1, "10.0.0.3", 10**6), 0.0)
    timer = controller.get_timer()
    assert timer == pytest.approx(0.01 + 1e-5)
    assert controller.handle_timer(timer) == [("h0", Stop(3, 1, 1)), ("h1", Grant(4, 1, 1, GBPS))]
    assert controller.counts["flows_expired"] == 1
    # it has to ask for the rest, and goes behind
    answers = controller.receive("h0", Request(2, 1, "10.0.0.2", 10**7), 0.02)
    assert [type(message) for _, message in answers] == [Stop]


def test_capacity_and_unknown_destinations() -> None:
    controller = admission()
    assert controller.receive("h0", Request(1, 1, "10.9.9.9", 1250), 0.0) == []
    assert controller.receive("h7", Request(1, 1, "10.0.0.2", 1250), 0.0) == []
    assert controller.counts["requests_refused"] == 2
    controller.receive("h0", Request(2, 1, "10.0.0.2", 1250), 0.0)
    failed = controller.capacity(VirtualLink("leaf0", "up"), 0, 0.0)
    assert [(host, type(message)) for host, message in failed] == [("h0", Stop)]
