"""CAPTON on a host: which flows ask, for how much, and what senders get; with the real controller side."""

from __future__ import annotations

import math

import pytest

from controller.capton.admission import AdmissionControl
from controller.capton.fabric import HostPlace, Rates, VirtualFabric
from controller.capton.scheduler import Scheduler
from host_agent.inner_packet import look
from protocol.admission import AdmissionPolicy, Finished, Grant, Request, Stop
from protocol.control import Peer
from protocol.underlay import label_of
from tests.unit.admission_agent import (
    MSS,
    OVERHEAD_BYTES,
    PEER,
    STALLED_S,
    STANDING,
    AdmittingAgent,
    policy_with,
)
from tests.unit.agent_relay import SESSIONS, UNDERLAY
from tests.unit.datagram_reference import decode
from tests.unit.inner_packets import HOST1, HOST2, check_ip, check_transport, tcp

RATE = 20_000_000
POLICY = AdmissionPolicy()
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
SCALE = 7
ON_THE_LINK = (MSS + OVERHEAD_BYTES) / MSS


def controller() -> AdmissionControl:
    rates = Rates(RATE, RATE)
    fabric = VirtualFabric([HostPlace("h1", rates), HostPlace("h2", rates), HostPlace("h3", rates)], {})
    return AdmissionControl(Scheduler(fabric), {"10.0.0.1": "h1", PEER: "h2", "10.0.0.3": "h3"})


class Host:
    """A TCP sender behind an agent: it sends what its window allows, and its peer acknowledges everything at once."""

    def __init__(self, agent: AdmittingAgent, port: int = 40000, announced: float | None = None) -> None:
        self.agent, self.port, self.announced = agent, port, announced
        self.sent = self.room = 0

    def open(self, now: float) -> None:
        options = b"\x02\x04\x05\x78\x01\x03\x03" + bytes((SCALE,))
        self.put(tcp(sequence=0, ports=(self.port, 80), flags=SYN, options=options), now)
        self.take([self.peer(0, SYN | ACK, 65535, options)], now)

    def put(self, packet: bytes, now: float) -> None:
        self.agent.sent(packet, self.announced, now)

    def peer(self, ack: int, flags: int = ACK, window: int = 4000, options: bytes = b"") -> bytes:
        ports = (80, self.port)
        return tcp(b"", HOST2, HOST1, ports=ports, ack=1 + ack, flags=flags, window=window, options=options)

    def take(self, packets: list[bytes], now: float) -> None:
        self.took(self.agent.received(packets, now))

    def took(self, packets: list[bytes]) -> None:
        for packet in packets:
            check_ip(packet)
            check_transport(packet, 20, 6)
            seen = look(packet)
            if seen.flow[-2:] != self.port.to_bytes(2, "big"):
                continue
            ack, window = int.from_bytes(packet[28:32], "big") - 1, int.from_bytes(packet[34:36], "big")
            self.room = ack + (window << (0 if packet[33] & SYN else SCALE))

    def send(self, most: int, now: float) -> int:
        """Send up to *most* segments, with an ACK after each two; return how many went."""
        count = 0
        while count < most and self.sent + MSS <= self.room:
            data = tcp(bytes(MSS), ports=(self.port, 80), sequence=1 + self.sent, partial=True)
            self.put(data, now)
            self.sent += MSS
            count += 1
            if count % 2 == 0:
                self.take([self.peer(self.sent)], now)
        self.take([self.peer(self.sent)], now)
        return count


def exchange(
    agents: dict[str, AdmittingAgent], central: AdmissionControl, now: float
) -> list[Request | Finished]:
    """Carry all messages that wait, both ways; return those to the controller."""
    said = []
    for host, agent in agents.items():
        for message in agent.messages_to_send():
            said.append(message)
            for to, answer in central.receive(host, message, now):
                agents[to].decided(answer, now)
    return said


def test_small_flows_leave_unscheduled_announced_or_not() -> None:
    agent = AdmittingAgent(POLICY)
    for port, announced in ((40000, 9000.0), (40001, None)):
        host = Host(agent, port, announced)
        host.open(0.0)
        packet = host.peer(0)
        assert agent.received([packet], 0.0) == [packet]
        host.took([packet])
        assert host.send(POLICY.threshold_bytes // MSS, 0.0) == 10
    assert agent.messages_to_send() == []
    assert agent.standing() == dict.fromkeys(STANDING, 0)


def test_an_announced_large_flow_is_held_from_its_first_packet_granted_and_finished() -> None:
    agent, central = AdmittingAgent(POLICY), controller()
    host = Host(agent, announced=100 * MSS)
    host.open(0.0)
    assert host.send(5, 0.0) == 0
    said = exchange({"h1": agent}, central, 0.0)
    assert said == [Request(1, 1, PEER, round(100 * MSS * ON_THE_LINK))]
    host.took(agent.updates())
    now, ends = 0.0, None
    while host.sent < 100 * MSS:
        now += 0.0005
        host.send(100 - host.sent // MSS, now)
        agent.handle_timer(now)
        host.took(agent.updates())
        if host.sent == 100 * MSS:
            ends = now
        assert now < 1
    assert ends == pytest.approx(
        100 * (MSS + OVERHEAD_BYTES) * 8 / RATE, rel=0.1
    )  # paced at the granted rate
    assert exchange({"h1": agent}, central, now)[-1] == Finished(2, 1)
    assert central.get_timer() is None
    packet = host.peer(host.sent)
    assert agent.received([packet], now) == [packet]  # nothing is held any longer


def test_who_cannot_use_its_grant_gives_it_back_and_asks_anew_when_it_can() -> None:
    agent, central = AdmittingAgent(POLICY), controller()
    host, other = (
        Host(agent, announced=1000.0 * MSS),
        Host(agent, 40001, announced=2000.0 * MSS),
    )
    host.open(0.0)
    other.open(0.0)

    def messages(now: float) -> None:
        agent.handle_timer(now)
        for message in agent.messages_to_send(now):
            for to, answer in central.receive("h1", message, now):
                assert to == "h1"
                agent.decided(answer, now)
        updates = agent.updates()
        host.took(updates)
        other.took(updates)

    def rates() -> dict[int, int]:
        return {one.active.flow: one.active.rate_bps for one in central.standing(0.0)}

    messages(0.0)
    now = 0.0
    while host.sent < 50 * MSS:
        now += 0.001
        host.send(2, now)
        messages(now)
    assert list(rates().values()) == [RATE, 0]
    begun = now
    while len(rates()) == 2:  # its peer's window is closed, say
        now += 0.01
        messages(now)
    assert STALLED_S <= now - begun <= STALLED_S + POLICY.refresh_s + 0.02
    assert list(rates().values()) == [RATE]
    assert other.send(2, now) > 0
    assert agent.totals()["flows_stalled"] == 1
    sent = host.sent
    assert host.send(50, now + 0.01) <= 3, "no more than it had been granted"
    assert host.sent > sent
    messages(now + 0.01)
    assert sorted(rates().values()) == [0, RATE]
    assert agent.standing() == {"flows_granted": 1, "flows_waiting": 1, "flows_unscheduled": 0}
    assert host.send(50, now + 0.02) > 0, "it has less left, and is first again"


def test_an_unannounced_flow_asks_when_it_has_sent_more_for_as_much_again() -> None:
    agent = AdmittingAgent(POLICY)
    host = Host(agent)
    host.open(0.0)
    host.took([host.peer(0)])
    host.send(11, 0.0)
    ((request,), sent) = agent.messages_to_send(), host.sent
    assert isinstance(request, Request)
    assert request.bytes_left == round(11 * MSS * ON_THE_LINK)
    assert host.send(5, 0.0) == 0
    assert host.sent == sent


def test_the_smaller_flow_stops_the_larger_one_which_goes_on_afterwards() -> None:
    agents, central = {"h1": AdmittingAgent(POLICY), "h3": AdmittingAgent(POLICY)}, controller()
    large, small = Host(agents["h1"], announced=10**6), Host(agents["h3"], announced=20 * MSS)
    large.open(0.0)
    exchange(agents, central, 0.0)
    large.took(agents["h1"].updates())
    now = 0.0
    while now < 0.02:
        now += 0.0005
        large.send(100, now)
    assert large.sent == pytest.approx(RATE / 8 / ON_THE_LINK * 0.02, rel=0.15)
    small.open(now)
    exchange(agents, central, now)
    small.took(agents["h3"].updates())
    at = large.sent
    while small.sent < 20 * MSS:
        now += 0.0005
        large.send(100, now)
        small.send(20 - small.sent // MSS, now)
        for host, agent in ((large, agents["h1"]), (small, agents["h3"])):
            agent.handle_timer(now)
            host.took(agent.updates())
        assert now < 0.2
    assert large.sent - at <= RATE / 8 * POLICY.burst_s + 2 * MSS  # what it had been granted already
    exchange(agents, central, now)
    agents["h1"].handle_timer(now + 0.002)
    large.took(agents["h1"].updates())
    assert large.send(100, now + 0.002) > 0


def test_without_a_controller_it_goes_on_after_the_fail_safe_time() -> None:
    agent = AdmittingAgent(POLICY)
    host = Host(agent, announced=math.inf)
    host.open(0.0)
    now = 0.0
    while now < POLICY.fail_safe_s:
        assert host.send(1, now) == 0
        now = agent.get_timer()
        agent.handle_timer(now)
    host.took(agent.updates())
    assert now == pytest.approx(POLICY.fail_safe_s)
    assert host.send(40, now) == 40
    assert agent.totals()["flows_unscheduled_by_fail_safe"] == 1


@pytest.mark.parametrize("flags", [FIN | ACK, RST])
def test_a_flow_that_closes_or_breaks_off_is_finished(flags: int) -> None:
    agent = AdmittingAgent(POLICY)
    host = Host(agent, announced=10**6)
    host.open(0.0)
    host.put(tcp(sequence=1, ports=(40000, 80), flags=flags), 0.0)
    assert [type(message) for message in agent.messages_to_send()] == [Request, Finished]
    assert len(agent) == 0
    host.open(1.0)  # the same ports again: another flow
    (request,) = agent.messages_to_send()
    assert request.flow == 2
    host.take([host.peer(0, RST)], 1.0)  # the peer breaks off
    assert [type(message) for message in agent.messages_to_send()] == [Finished]


def test_another_scheme_lets_everything_go_and_idle_flows_are_forgotten() -> None:
    agent, central = AdmittingAgent(POLICY), controller()
    host = Host(agent, announced=10**6)
    host.open(0.0)
    exchange({"h1": agent}, central, 0.0)
    agent.decided(Stop(9, 1, 1), 0.0)
    agent.decided(Grant(8, 1, 1, RATE), 0.0)  # late
    assert host.send(9, 0.0) == 0
    agent.release(0.0)
    host.took(agent.updates())
    assert host.send(50, 0.0) == 50
    assert [type(message) for message in agent.messages_to_send()] == [Finished]


def held_for_minutes(announced: float | None, seconds: int = 300) -> Host:
    """Return the host of a large flow that waits.

    The host is silent, for Linux's probes of a closed window are 51, 102, 120 s apart.
    """
    agent = AdmittingAgent(POLICY)
    host = Host(agent, announced=announced)
    host.open(0.0)
    host.send(20, 0.0)
    for second in range(seconds):
        agent.handle_timer(float(second))
        for message in agent.messages_to_send(float(second)):
            assert isinstance(message, Request)
            agent.decided(Stop(message.sequence, message.flow, message.sequence), float(second))
        host.took(agent.updates())
        assert host.sent + MSS > host.room, "it is held"
    return host


@pytest.mark.parametrize("announced", [100.0 * MSS, None])
def test_a_flow_that_waits_for_minutes_still_waits_and_goes_on_when_it_is_granted(
    announced: float | None,
) -> None:
    host = held_for_minutes(announced)
    assert host.agent.standing()["flows_waiting"] == 1
    host.agent.decided(Grant(1 << 30, 1, 1 << 30, RATE), 300.0)
    host.took(host.agent.updates())
    before = host.sent
    assert host.send(20, 300.0) > 0
    assert host.sent > before


def test_a_receiver_that_has_forgotten_a_flow_that_waited_misses_nothing_of_it() -> None:
    host = held_for_minutes(None)
    core = host.agent.core
    core.packet_from_host(tcp(bytes(MSS), ports=(host.port, 80), sequence=1 + host.sent), 300.0)
    (datagram,) = core.datagrams_to_send()
    header, _ = decode(datagram.data)
    assert header.position == 0, "a flow that is new there begins so"
    assert core.counters()["send_flows"] == 1


def test_a_flow_keeps_its_granted_path_under_another_policy_that_holds_flows_alike() -> None:
    """A restarted controller says the scheme under the next version, and grants what it had granted."""
    agent = AdmittingAgent(POLICY)
    places = [(HOST1, "left"), (HOST2, "right")]
    peers = [
        Peer(f"h{host + 1}", UNDERLAY[host], [overlay], SESSIONS[host], leaf)
        for host, (overlay, leaf) in enumerate(places)
    ]
    agent.core.set_directory(peers, 0.0)
    agent.core.set_paths({"right": tuple(range(11, 31))}, {})
    host = Host(agent, announced=1000.0 * MSS)
    host.open(0.0)
    (request,) = agent.messages_to_send()
    assert isinstance(request, Request)

    def used(first: int) -> set[int]:
        for number in range(first, first + 3):
            agent.core.packet_from_host(
                tcp(bytes(1000), ports=(host.port, 80), sequence=1 + 1000 * number), 0.5
            )
        return {one.source_port for one in agent.core.datagrams_to_send()}

    for version, stamp in ((2, 13), (3, 29)):
        agent.decided(Grant(version, request.flow, request.sequence, RATE, stamp), 0.1)
        assert used(10 * version) == {label_of(stamp)}
        agent.core.set_policy(policy_with(POLICY, version), 0.2)
        assert used(10 * version + 3) == {label_of(stamp)}
