"""CAPTON's messages: the bytes, and what becomes of agents and controller where messages are lost, doubled and late."""

from __future__ import annotations

import dataclasses
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
from protocol.control import Ping
from protocol.frames import ControlError, FrameReader, encode
from tests.unit.admission_agent import PEER, AdmittingAgent
from tests.unit.host_agent.admission.test_capton_host import MSS, Host

RATE = 2_000_000
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
    with pytest.raises(ControlError, match="are not an admission message"):
        FrameReader().feed((len(body) + 1).to_bytes(4, "big") + b"\x43" + body)


def test_sequence_numbers_are_compared_round_the_corner() -> None:
    assert newer(0, None)
    assert newer(3, 2**32 - 3)
    assert not newer(2**32 - 3, 3)
    assert not newer(5, 5)


HOSTS = {f"10.0.0.{index}": f"h{index}" for index in range(6)}


def admission(timeout_s: float = 0.05) -> AdmissionControl:
    rates = Rates(RATE, RATE)
    places = [HostPlace(name, rates, (f"leaf{index // 2}",)) for index, name in enumerate(HOSTS.values())]
    fabric = VirtualFabric(places, {f"leaf{leaf}": rates for leaf in range(3)})
    return AdmissionControl(Scheduler(fabric, Parameters(finish_timeout_s=timeout_s)), {**HOSTS, PEER: "h2"})


class Sending:
    """A host with an agent, and its flows: each sends what its window allows. Flows go to hosts of their own."""

    def __init__(self) -> None:
        self.agent = AdmittingAgent(POLICY)
        self.flows: dict[int, tuple[Host, int]] = {}
        """By port: TCP's end, and its segments (0: without end)."""
        self.destinations: list[str] = []
        """By number of the flow, from 1 on, which is the order in which they open."""

    def begin(self, port: int, destination: str, segments: int, now: float) -> None:
        host = Host(self.agent, port, segments * MSS or math.inf)
        self.flows[port] = (host, segments)
        self.destinations.append(destination)
        host.open(now)

    def step(self, now: float) -> list[AdmissionMessage]:
        """Return what is said to the controller; every agent here has the same peer, so destinations are put in."""
        self.agent.handle_timer(now)
        updates = self.agent.updates()
        for port, (host, segments) in list(self.flows.items()):
            host.took(updates)
            host.send(min(3, segments - host.sent // MSS) if segments else 3, now)
            if segments and host.sent == segments * MSS:
                del self.flows[port]
        said: list[AdmissionMessage] = []
        for message in self.agent.messages_to_send(now):
            if isinstance(message, Request):
                destination = self.destinations[message.flow - 1]
                message = dataclasses.replace(message, destination=destination)
            said.append(message)
        return said


def test_a_host_has_a_number_of_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.capton.admission.MOST_FLOWS", 5)
    control = admission(timeout_s=600.0)
    for flow in range(20):
        answers = control.receive("h0", Request(flow, flow, "10.0.0.1", 1 << 60), 0.0)
        assert bool(answers) == (flow < 5)
    assert len(control.standing(0.0)) == 5
    assert control.counts["requests_refused"] == 15
    assert control.receive("h0", Request(21, 0, "10.0.0.1", 1 << 50), 0.0), "a flow that it has may ask again"
    assert control.receive("h2", Request(1, 1, "10.0.0.3", 1000), 0.0), "another host has its own"
    control.receive("h0", Finished(22, 1), 0.0)
    assert control.receive("h0", Request(23, 50, "10.0.0.1", 1000), 0.0), "one has ended"
    control.gone("h0", 0.0)
    assert control.receive("h0", Request(1, 1, "10.0.0.1", 1000), 0.0)


class World:
    """Agents and a controller; flows send what they are granted. Messages are harmed until `calm_at`."""

    def __init__(self, rng: np.random.Generator, loss: float, calm_at: float) -> None:
        self.rng, self.loss, self.calm_at = rng, loss, calm_at
        self.controller = admission()
        self.hosts = {host: Sending() for host in HOSTS.values()}
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

    def step(self, seconds: float) -> None:
        self.now += seconds
        timer = self.controller.get_timer()
        if timer is not None and timer <= self.now:
            self.answer(self.controller.handle_timer(self.now))
        for name, host in self.hosts.items():
            for message in host.step(self.now):
                self.post(name, False, message)
        while self.on_the_way and self.on_the_way[0][0] <= self.now:
            _, _, name, to_agent, message = heapq.heappop(self.on_the_way)
            if to_agent:
                assert isinstance(message, Grant | Stop)
                self.hosts[name].agent.decided(message, self.now)
            else:
                assert isinstance(message, Request | Finished)
                self.answer(self.controller.receive(name, message, self.now))

    def answer(self, answers: list[tuple[str, Grant | Stop]]) -> None:
        for host, message in answers:
            self.post(host, True, message)


@pytest.mark.slow
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
        segments = int(rng.integers(11, 40))
        world.hosts[f"h{source}"].begin(1000 + flow, addresses[destination], segments, world.now)
        world.step(0.005)
    # endless ones, one from each host, are still there at the end
    for index in range(6):
        world.hosts[f"h{index}"].begin(2000 + index, addresses[(index + 1) % 6], 0, world.now)
    while any(len(host.flows) > 1 for host in world.hosts.values()):
        world.step(0.005)
        assert world.now < 30
    for _ in range(100):
        world.step(0.005)
    assert [list(host.flows) for host in world.hosts.values()] == [[2000 + index] for index in range(6)]
    standing = world.controller.standing(world.now)
    assert sorted(flow.active.source for flow in standing) == list(HOSTS.values())
    granted = {flow.active.source: flow.active.rate_bps > 0 for flow in standing}
    for name, host in world.hosts.items():
        has = granted[name]
        assert host.agent.standing() == {
            "flows_granted": int(has), "flows_waiting": int(not has), "flows_unscheduled": 0
        }  # fmt: skip
    assert sum(granted.values()) >= 3


def asking(destination: str = PEER, size: float = 10**6) -> tuple[AdmittingAgent, Host, Request]:
    """Return an agent with an open flow of so many bytes, its host, and what the agent asks."""
    agent = AdmittingAgent(POLICY)
    host = Host(agent, announced=size)
    host.open(0.0)
    (request,) = agent.messages_to_send()
    assert isinstance(request, Request)
    assert request.destination == destination
    return agent, host, request


def standing(granted: int, waiting: int, unscheduled: int = 0) -> dict[str, float]:
    return {"flows_granted": granted, "flows_waiting": waiting, "flows_unscheduled": unscheduled}


def test_a_lost_stop_is_made_good_by_the_next_request() -> None:
    agent, host, request = asking()
    controller = admission()
    ((_, grant),) = controller.receive("h0", request, 0.0)
    agent.decided(grant, 0.0)
    host.took(agent.updates())
    assert agent.standing() == standing(1, 0)
    assert host.send(1, 0.0) == 1
    stopped = controller.receive("h1", Request(1, 1, PEER, 1000), 0.0)
    assert [(to, type(message)) for to, message in stopped] == [("h0", Stop), ("h1", Grant)]
    agent.handle_timer(POLICY.refresh_s - 1e-6)  # the stop is lost
    assert agent.messages_to_send() == []
    agent.handle_timer(POLICY.refresh_s)
    (again,) = agent.messages_to_send()
    ((_, stop),) = controller.receive("h0", again, POLICY.refresh_s)
    agent.decided(stop, POLICY.refresh_s)
    assert agent.standing() == standing(0, 1)
    agent.decided(grant, POLICY.refresh_s)  # it was late
    assert agent.standing() == standing(0, 1)
    assert agent.totals()["decisions_late"] == 1


def test_a_late_request_does_not_bring_a_flow_back() -> None:
    controller = admission()
    assert controller.receive("h0", Finished(2, 1), 0.0) == []
    assert controller.receive("h0", Request(1, 1, "10.0.0.2", 1000), 0.0) == []
    assert controller.counts["messages_late"] == 1
    assert controller.get_timer() is None


def test_without_a_controller_flows_go_unscheduled_and_say_so_until_it_answers() -> None:
    agent, _, request = asking()
    controller, requests, now = admission(), [request], 0.0
    while agent.standing() == standing(0, 1):
        now = agent.get_timer()
        assert now <= POLICY.fail_safe_s
        agent.handle_timer(now)
        requests += [message for message in agent.messages_to_send(now) if isinstance(message, Request)]
    assert now == pytest.approx(POLICY.fail_safe_s)
    assert agent.standing() == standing(0, 0, 1)
    assert agent.totals()["flows_unscheduled_by_fail_safe"] == 1
    assert len(requests) >= POLICY.fail_safe_s / POLICY.retry_s
    ((_, last),) = controller.receive("h0", requests[-1], now)
    agent.decided(last, now)
    assert agent.standing() == standing(1, 0)


def test_a_controller_that_began_anew_learns_all_flows() -> None:
    agent = AdmittingAgent(POLICY)
    for port, size in ((40000, 10**6), (40001, 10**5)):
        Host(agent, port, size).open(0.0)
    for controller in (admission(), admission()):
        agent.core.gate.connected(0.0)
        requests = agent.messages_to_send()
        assert [message.flow for message in requests] == [1, 2]
        for message in requests:
            for to, answer in controller.receive("h0", message, 0.0):
                assert to == "h0"
                agent.decided(answer, 0.0)
        assert agent.standing() == standing(1, 1)
        flows = sorted(
            (flow.active.remaining_bytes, flow.active.rate_bps) for flow in controller.standing(0.0)
        )
        assert [rate_bps for _, rate_bps in flows] == [RATE, 0], "the smaller flow is first"


def test_an_agent_that_dies_holding_a_grant_frees_its_links() -> None:
    controller = admission()
    controller.receive("h0", Request(1, 1, "10.0.0.2", 10**6), 0.0)
    controller.receive("h1", Request(1, 1, "10.0.0.3", 10**7), 0.0)
    assert controller.gone("h0", 0.001) == [("h1", Grant(3, 1, 1, RATE))]
    ((_, granted),) = controller.receive("h0", Request(1, 1, "10.0.0.2", 10**5), 0.002)[-1:]
    assert isinstance(granted, Grant)  # it is back, and numbers its flows and messages from 1


def test_a_host_that_says_too_little_loses_its_grant() -> None:
    controller = admission(timeout_s=0.01)
    controller.receive("h0", Request(1, 1, "10.0.0.2", 1250), 0.0)  # it has 1 MB
    controller.receive("h1", Request(1, 1, "10.0.0.3", 10**6), 0.0)
    timer = controller.get_timer()
    assert timer == pytest.approx(0.01 + 1250 * 8 / RATE)
    assert controller.handle_timer(timer) == [("h0", Stop(3, 1, 1)), ("h1", Grant(4, 1, 1, RATE))]
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
