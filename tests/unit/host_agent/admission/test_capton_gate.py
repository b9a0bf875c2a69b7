"""CAPTON inside an agent: large flows ask and are held, small ones pass, and a scheme without it lets all go."""

from __future__ import annotations

import dataclasses

from controller.agents.asking import AgentInfo
from controller.api.routes_capton import capton_view
from controller.capton.admission import StandingFlow
from controller.capton.fabric import VirtualLink
from controller.capton.scheduler import ActiveFlow, LinkUse
from controller.capton.service import AdmissionState
from host_agent.admission.unsent import Unsent
from host_agent.core import AgentCore
from host_agent.inner_packet import look
from protocol.admission import AdmissionPolicy, Finished, Grant, Request
from protocol.policy import ClassPolicy, PathSettings, Policy
from protocol.underlay import LABEL_FIRST, TrafficClass, label_of
from tests.unit.agent_relay import UNDERLAY, core
from tests.unit.compiled_paths import compiled
from tests.unit.host_agent.paths.test_agent_paths import Inner, route
from tests.unit.inner_packets import HOST1, HOST2, tcp

SYN, ACK = 0x02, 0x10
ASKING = AdmissionPolicy()
AFTERWARDS_S = 5.0
"""How long retransmissions are watched after the end of a scheme with admission."""
OPTIONS = b"\x02\x04\x05\x78\x01\x03\x03\x07"
"""Largest segment 1400 B, window scale 7."""


def policy(version: int, admission: AdmissionPolicy | None = ASKING) -> Policy:
    one = ClassPolicy(PathSettings("granted"))
    return Policy(version, "test", short=one, long=one, control=one, admission=admission)


def nothing(flow: bytes) -> Unsent | None:
    return None


def opened(agent: AgentCore, peer: AgentCore, now: float, announced: float) -> list[bytes]:
    """Open a connection; return what the host gets in answer to its SYN."""
    syn = tcp(sequence=0, ports=(40000, 80), flags=SYN, options=OPTIONS)
    agent.announce(look(syn).flow, announced)
    agent.packet_from_host(syn, now)
    answer = tcp(b"", HOST2, HOST1, ports=(80, 40000), ack=1, flags=SYN | ACK, window=65535, options=OPTIONS)
    peer.packet_from_host(answer, now)
    for out in peer.datagrams_to_send():
        agent.receive_datagram(out.data, UNDERLAY[1], out.source_port, out.tos, now=now)
    return agent.packets_to_deliver()


def window(packet: bytes) -> int:
    return int.from_bytes(packet[34:36], "big")


def test_a_large_flow_asks_with_its_first_packet_and_gets_a_closed_window() -> None:
    agent, peer = core(0), core(1)
    agent.set_policy(policy(1), 0.0)
    (answer,) = opened(agent, peer, 0.0, 10**6)
    assert window(answer) == 0
    (request,) = agent.gate.messages_to_send(0.0, nothing)
    assert isinstance(request, Request)
    assert request.destination == UNDERLAY[1]
    timer = agent.get_timer()
    assert timer <= 0.02
    agent.gate.decided(Grant(1, request.flow, request.sequence, 10**7, 9), 0.001)
    (update,) = agent.packets_to_deliver()
    assert window(update) << 7 >= 1400
    assert agent.counters()["flows_granted"] == 1


def test_small_flows_are_left_alone() -> None:
    agent, peer = core(0), core(1)
    agent.set_policy(policy(1), 0.0)
    (answer,) = opened(agent, peer, 0.0, 5000)
    assert window(answer) == 65535
    assert agent.gate.messages_to_send(0.0, nothing) == []


def test_another_scheme_lets_go_of_what_is_held_and_numbers_go_on() -> None:
    agent, peer = core(0), core(1)
    agent.set_policy(policy(1), 0.0)
    opened(agent, peer, 0.0, 10**6)
    (first,) = agent.gate.messages_to_send(0.0, nothing)
    agent.set_policy(policy(2, None), 1.0)
    (finished,) = agent.gate.messages_to_send(1.0, nothing)
    assert isinstance(finished, Finished)
    (update,) = agent.packets_to_deliver()
    assert window(update) << 7 >= 65535 - 127
    agent.handle_timer(1.0 + AFTERWARDS_S)
    agent.set_policy(policy(3), 2.0)
    opened(agent, peer, 2.0, 10**6)
    (second,) = agent.gate.messages_to_send(2.0, nothing)
    assert second.sequence > finished.sequence > first.sequence
    assert second.flow > first.flow
    assert agent.counters()["flows_scheduled"] == 2


def test_a_granted_path_is_kept_while_it_lives() -> None:
    paths, flow, way = compiled("granted"), Inner(1, 77), route(1, 2, 3, 4)
    hashed = paths.entropy(flow, way, 1400, 0.0)
    other = next(label for label in way.labels if label != hashed)
    paths.grant(1, other - LABEL_FIRST)
    assert set(paths.entropies(flow, way, 1400, 20, 1400, 0.0)) == {other}
    assert paths.entropy(Inner(2, 77), way, 1400, 0.0) == hashed
    alive = route(*(label - LABEL_FIRST for label in way.labels if label != other), kind=TrafficClass.LONG)
    assert paths.entropy(flow, alive, 1400, 0.0) in alive.labels
    paths.grant(1, 0)
    assert paths.entropy(flow, way, 1400, 0.0) == hashed
    assert label_of(1) == LABEL_FIRST + 1


def test_the_api_reports_all_that_stands() -> None:
    up, path = VirtualLink("l1", "up"), VirtualLink("l1-s1:3", "up")
    flows = [
        StandingFlow(ActiveFlow(3, "h1", "h3", 1000, 5_000_000, 11), 9.0, 2000),
        StandingFlow(ActiveFlow(4, "h2", "h3", 9000, 0), 9.5, 9000),
    ]
    links = {up: LinkUse(20_000_000, 5_000_000), path: LinkUse(0, 0)}
    standing = AdmissionState(10.0, "one", flows, links, {"l1": "leaf", "h1": "host"}, {"requests": 2})
    counters = {"flows_small": 5.0, "flows_unscheduled": 1.0, "request_to_decision.36": 3.0}
    agent = AgentInfo("h1", True, "10.0.1.1", [], 1, "", 1, "", counters, None, None, None)
    view = capton_view(standing, [agent], "hyline")
    assert view["totals"] == {
        "granted_flows": 1,
        "waiting_flows": 1,
        "granted_bps": 5_000_000,
        "remaining_bytes": 10_000,
    }
    assert [(flow["state"], flow["path"], flow["asked_s_ago"]) for flow in view["flows"]] == [
        ("granted", 11, 1.0),
        ("waiting", None, 0.5),
    ]
    assert [(link["name"], link["kind"], link["utilisation"]) for link in view["links"]] == [
        ("l1 up", "leaf", 0.25),
        ("l1-s1:3", "path", 0.0),
    ]
    assert view["hosts"][0]["unscheduled_now"] == 1
    assert view["latency"]["count"] == 3
    assert view["latency"]["median_us"] is not None
    off = capton_view(None, [dataclasses.replace(agent, counters={})], "ecmp")
    assert (off["enabled"], off["flows"], off["links"], off["hosts"]) == (False, [], [], [])
    assert off["latency"]["median_us"] is None
