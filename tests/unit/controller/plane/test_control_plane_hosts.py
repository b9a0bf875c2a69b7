"""Hosts under the control plane: learnt, moved, forged, limited, over a simulated fabric."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from controller.control_plane import ControlPlane
from controller.fabric import resolver
from controller.fabric.arp import BROADCAST_MAC, NO_MAC, REPLY, REQUEST, Arp, decode_arp
from controller.fabric.events import HostConflict, HostLinkChanged, HostSeen
from controller.fabric.graph import PortRef
from controller.fabric.hosts import CHALLENGE_S, HOSTS_PER_PORT, Hosts
from controller.fabric.lldp import encode_lldp
from controller.fabric.switch_data import Port
from controller.openflow.cookies import Rule
from controller.plane.effects import Effects
from protocol.underlay import TrafficClass
from tests.unit.controller.plane.started_fabric import all_deliver, running, since
from tests.unit.fabric_shapes import CAPS, KEY, SimHost, datagram, leaf_spine
from tests.unit.simulated_fabric import Simulation


def answers(sim: Simulation, host: SimHost) -> list[Arp]:
    frames = [decode_arp(frame) for _, place, frame in sim.frames if place == host.place]
    return [arp for arp in frames if arp is not None and arp.operation == REPLY]


def test_plain_hosts_are_learnt_from_arp_answered_and_reached() -> None:
    sim = running(leaf_spine(2, 3, 1), agents=False)
    h1, h2 = sim.shape.hosts
    sim.apply_s[0x20002] = 0.3
    sim.arp(h1, h2.ipv4)
    sim.run_until(lambda: bool(answers(sim, h1)), 1)
    assert sim.now - sim.updates[0][0] > 0.3, "packets may come before the switches know where to"
    [arp] = answers(sim, h1)
    assert (arp.sender_ip, arp.sender_mac, arp.target_ip, arp.eth_dst) == (h2.ipv4, h2.mac, h1.ipv4, h1.mac)
    assert sim.delivers(h1, h2, TrafficClass.NONE)
    assert sim.delivers(h2, h1, TrafficClass.NONE)
    sim.frames.clear()
    sim.arp(h2, h1.ipv4)
    sim.run(0.05)
    assert len(answers(sim, h2)) == 1
    assert not any(place == h1.place for _, place, _ in sim.frames), "h1 was asked though it is known"


def test_a_request_that_a_leaf_has_answered_is_learnt_from_and_not_answered_again() -> None:
    sim = running(leaf_spine(2, 3, 1))
    h1, h2 = sim.shape.hosts
    newcomer = dataclasses.replace(h1, ipv4="10.0.1.77", mac="02:ca:00:01:00:77")
    for host in (h1, newcomer):
        sim.frames.clear()
        request = Arp(h2.mac, host.mac, REQUEST, host.mac, host.ipv4, NO_MAC, h2.ipv4)
        sim.do(sim.plane.packet_in(*h1.place, Rule.ARP_ANSWERED, request.encode(), now=sim.now))
        sim.run(0.5)
        assert not answers(sim, h1)
        assert host.ipv4 in {known.ipv4 for known in sim.plane.snapshot().hosts}


def test_only_edge_ports_are_asked_and_seldom() -> None:
    sim = running(leaf_spine(3, 2, 2), agents=False)
    h1 = sim.shape.hosts[0]
    sim.frames.clear()
    for _ in range(600):
        sim.arp(h1, "10.0.77.77")
        sim.run(0.1)
    asked = [decode_arp(frame) for _, _, frame in sim.frames]
    questions = [arp for arp in asked if arp is not None]
    assert 5 * 4 <= len(questions) <= 5 * 7  # 1, 2, 4 ... 30 s apart, on all edge ports but the asker's
    assert {arp.sender_ip for arp in questions} == {"0.0.0.0"}
    assert answers(sim, h1) == []


@pytest.mark.parametrize("registered", [False, True])
def test_a_question_at_many_ports_goes_out_in_parts(registered: bool) -> None:
    """A question at 16 000 ports in one step held up a leaf's mode switches for 0.2 s."""
    sim = running(leaf_spine(2, 2, 1), agents=False)
    h1, ports = sim.shape.hosts[0], 1000
    wide = [Port(number, f"p{number}", "02:00:00:00:00:01", True) for number in range(1, ports + 1)]
    sim.plane.switch_connected(0x900000, wide, None, sim.now)
    while (due := sim.plane.deadline()) is not None and due <= sim.now:
        sim.plane.tick(sim.now)  # it is taken up some ports at a time
    now, asked, most = sim.now, Counter[PortRef](), 0

    def count(effects: Effects) -> None:
        nonlocal most
        questions = [out for out in effects.packet_outs if decode_arp(out.data) is not None]
        most = max(most, len(questions))
        asked.update(PortRef(out.dpid, out.port) for out in questions)

    if registered:
        count(sim.plane.agent_joined("away", "10.0.77.77", "02:00:00:00:77:77", now))
    else:
        request = Arp("ff:ff:ff:ff:ff:ff", h1.mac, REQUEST, h1.mac, h1.ipv4, NO_MAC, "10.0.77.77")
        count(sim.plane.packet_in(*h1.place, Rule.ARP, request.encode(), now=now))
    while (due := sim.plane.deadline()) is not None and due < sim.now + 0.6:
        now = max(now, due)
        count(sim.plane.tick(now))
    assert 0 < most <= resolver.AT_ONCE
    wired = {end for link in sim.shape.links for end in link}
    everywhere = {
        PortRef(dpid, number + 1) for dpid, most in sim.shape.ports.items() for number in range(most)
    }
    everywhere |= {PortRef(0x900000, port.number) for port in wide}
    assert asked == Counter(everywhere - wired - (set() if registered else {h1.place}))


def test_a_host_that_scans_addresses_costs_little() -> None:
    sim = running(leaf_spine(2, 2, 2), agents=False)
    h1 = sim.shape.hosts[0]
    for number in range(3000):
        sim.arp(h1, f"10.9.{number // 250}.{number % 250 + 1}")
    began = len(sim.frames)
    sim.run(0.2)
    assert len(sim.frames) - began < 3000


def test_a_free_address_is_not_taken_from_who_asks_for_it() -> None:
    """Duplicate address detection (RFC 5227): no sender address, no answer for a free one, one for a taken one."""
    sim = running(leaf_spine(2, 2, 1))
    h1, h2 = sim.shape.hosts
    sim.frames.clear()
    sim.arp(dataclasses.replace(h1, ipv4="0.0.0.0"), "10.0.1.200")
    sim.run(0.5)
    assert not any(decode_arp(frame) for _, _, frame in sim.frames)
    sim.arp(dataclasses.replace(h1, ipv4="0.0.0.0"), h2.ipv4)
    sim.run(0.5)
    assert [arp.sender_mac for arp in answers(sim, h1)] == [h2.mac]


def elsewhere(sim: Simulation, host: SimHost) -> SimHost:
    """Return *host* at a new port of the third leaf."""
    leaf = sim.shape.hosts[2].place.dpid
    moved = dataclasses.replace(host, place=sim.shape.new_port(leaf))
    sim.do(sim.plane.port_changed(leaf, sim.ports(leaf)[-1], sim.now))
    return moved


def every_host_says_arp(sim: Simulation) -> None:
    """Have all places known, and forget the events of that."""
    for host in sim.shape.hosts:
        sim.arp(host, host.ipv4)
    sim.run(0.1)
    sim.events.clear()


@pytest.mark.parametrize("agents", [True, False])
@pytest.mark.parametrize("old", ["down", "silent"])
def test_a_host_that_moves_is_followed(agents: bool, old: str) -> None:
    sim = running(leaf_spine(3, 2, 1), agents=agents)
    h1, h2, h3 = sim.shape.hosts
    every_host_says_arp(sim)
    moved = elsewhere(sim, h2)
    if old == "down":
        sim.port(h2.place, up=False)
    else:
        del sim.hosts[h2.place]
    sim.arp(moved, h1.ipv4)
    took = sim.run_until(lambda: bool(since(sim, HostSeen)), 3)
    assert took <= 0.1 if old == "down" else CHALLENGE_S <= took <= CHALLENGE_S + 0.1
    sim.run(0.1)
    [seen] = since(sim, HostSeen)
    assert (seen.place, seen.moved_from) == (moved.place, h2.place)  # type: ignore[attr-defined]
    kind = TrafficClass.LONG if agents else TrafficClass.NONE
    assert sim.delivers(h1, moved, kind)
    assert sim.delivers(h3, moved, kind)


def test_a_leaf_whose_last_host_has_moved_sends_nothing_back() -> None:
    """Others send it that host's packets until they are updated, which a slow or lost switch may not be for long."""
    sim = running(leaf_spine(3, 2, 1))
    h1, h2, h3 = sim.shape.hosts
    moved = elsewhere(sim, h2)
    sim.run(1)
    sim.apply_s[h3.place.dpid] = 1.0
    ways = []

    def look() -> None:
        ways.append(
            [
                trace.place
                for host in (h1, h3)
                for trace in sim.fabric.traces(datagram(host, h2, TrafficClass.LONG), host.place)
            ]
        )

    sim.after_update = look
    sim.port(h2.place, up=False)
    sim.arp(moved, h1.ipv4)
    sim.run(3)
    assert len(ways) > 3
    assert {place for places in ways for place in places} <= {None, h2.place, moved.place}
    assert sim.delivers(h1, moved)
    assert sim.delivers(h3, moved)


@pytest.mark.parametrize("agents", [True, False])
@pytest.mark.parametrize("lost", [0, 2])
def test_a_host_that_answers_at_its_port_is_moved_by_no_forged_arp(agents: bool, lost: int) -> None:
    sim = running(leaf_spine(3, 2, 1), agents=agents)
    h1, h2, _ = sim.shape.hosts
    every_host_says_arp(sim)
    forger = elsewhere(sim, h2)
    dropped = 0

    def lose(sender: PortRef) -> bool:
        nonlocal dropped
        dropped += sender == h2.place
        return sender == h2.place and dropped <= lost

    for _ in range(20):
        dropped, sim.lost_frames = 0, lose
        sim.arp(forger, h1.ipv4)
        sim.run(0.7)
    assert since(sim, HostSeen) == []
    assert sim.delivers(h1, h2, TrafficClass.LONG if agents else TrafficClass.NONE)
    conflicts = since(sim, HostConflict)
    assert {event.place for event in conflicts} == {forger.place}  # type: ignore[attr-defined]
    assert len(conflicts) <= 2, "one in ten seconds"


@pytest.mark.parametrize("agents", [True, False])
def test_an_answer_that_is_not_read_yet_is_no_silence_of_a_host(agents: bool) -> None:
    """The controller does not run from its first question on; then what is due goes before what has come."""
    sim = running(leaf_spine(3, 2, 1), agents=agents)
    h1, h2, _ = sim.shape.hosts
    every_host_says_arp(sim)
    sim.frames.clear()
    sim.arp(elsewhere(sim, h2), h1.ipv4)
    sim.run_until(lambda: any(place == h2.place and decode_arp(frame) for _, place, frame in sim.frames), 0.1)
    sim.now += 1.5 * CHALLENGE_S
    for _ in range(3):
        sim.do(sim.plane.tick(sim.now))
    sim.run(2)
    assert since(sim, HostSeen) == []
    assert since(sim, HostConflict) != []
    assert sim.delivers(h1, h2, TrafficClass.LONG if agents else TrafficClass.NONE)


def test_an_answer_that_is_not_read_yet_gives_no_address_to_another_host() -> None:
    """As above, for a plain host's address: what another switch sent is read first, time after time."""
    sim = running(leaf_spine(2, 2, 2), agents=False)
    h1, h2, h3, h4 = sim.shape.hosts
    every_host_says_arp(sim)
    sim.frames.clear()
    sim.arp(dataclasses.replace(h2, ipv4=h3.ipv4), h1.ipv4)
    sim.run_until(lambda: any(place == h3.place and decode_arp(frame) for _, place, frame in sim.frames), 0.1)
    sim.now += 1.5 * CHALLENGE_S
    forged = Arp(BROADCAST_MAC, h2.mac, REQUEST, h2.mac, h3.ipv4, NO_MAC, h1.ipv4).encode()
    for _ in range(4):
        sim.do(sim.plane.packet_in(*h2.place, Rule.ARP, forged, now=sim.now))
        sim.do(sim.plane.tick(sim.now))
    sim.run(2)
    assert since(sim, HostSeen) == []
    assert len(since(sim, HostConflict)) == 1
    assert sim.delivers(h4, h3, TrafficClass.NONE)


def test_a_port_of_a_host_that_goes_down_is_reported_once_and_again_when_it_is_back() -> None:
    sim = running(leaf_spine(2, 2, 1))
    h1, h2 = sim.shape.hosts
    for up in (False, False, True):
        sim.port(h1.place, up=up)
        known = {host.ipv4: host.up for host in sim.plane.snapshot().hosts}
        assert known == {h1.ipv4: up, h2.ipv4: True}
    changed = since(sim, HostLinkChanged)
    assert [(host.ipv4, host.place, host.up) for host in changed] == [  # type: ignore[attr-defined]
        (h1.ipv4, h1.place, False),
        (h1.ipv4, h1.place, True),
    ]


def test_an_agents_address_is_not_given_to_another_host() -> None:
    sim = running(leaf_spine(2, 2, 2))
    h1, h2, h3, _ = sim.shape.hosts
    sim.silent.add(h3.ipv4)  # busy, say
    for _ in range(10):
        sim.arp(dataclasses.replace(h2, ipv4=h3.ipv4), h1.ipv4)
        sim.run(0.5)
    assert len(since(sim, HostConflict)) == 1
    assert sim.delivers(h1, h3)


@pytest.mark.parametrize("alive", [True, False])
def test_a_plain_hosts_address_changes_hands_only_when_it_is_silent(alive: bool) -> None:
    sim = running(leaf_spine(2, 2, 2), agents=False)
    h1, h2, h3, h4 = sim.shape.hosts
    for host in sim.shape.hosts:
        sim.arp(host, host.ipv4)
    sim.run(0.1)
    if not alive:
        sim.silent.add(h3.ipv4)
    claimant = dataclasses.replace(h2, ipv4=h3.ipv4)
    for _ in range(4):
        sim.arp(claimant, h1.ipv4)
        sim.run(0.8)
    owner = h3 if alive else claimant
    assert sim.delivers(h4, owner, TrafficClass.NONE)
    assert len(since(sim, HostConflict)) == 1


def test_made_up_addresses_behind_one_port_are_limited() -> None:
    sim = running(leaf_spine(2, 2, 1), agents=False)
    h1 = sim.shape.hosts[0]
    for number in range(300):
        sim.arp(dataclasses.replace(h1, ipv4=f"10.1.{number // 200}.{number % 200 + 1}"), "10.0.1.1")
    sim.run(0.5)
    assert len(sim.plane.snapshot().hosts) == 64


def test_an_agent_that_comes_back_with_other_addresses() -> None:
    sim = running(leaf_spine(2, 2, 1))
    h1, h2 = sim.shape.hosts
    sim.do(sim.plane.agent_left("h2", sim.now))
    sim.run(1)
    assert sim.delivers(h1, h2), "an agent may go on without its channel"
    other = dataclasses.replace(h2, ipv4="10.0.2.99", mac="02:ca:00:02:00:63")
    sim.hosts[h2.place] = other
    sim.shape.hosts[1] = other
    sim.join(other)
    sim.run_until(sim.plane.ready, 2)
    assert sim.delivers(h1, other)
    assert [host.ipv4 for host in sim.plane.snapshot().hosts] == [h1.ipv4, other.ipv4]


def test_a_host_whose_port_comes_up_late_is_found() -> None:
    sim = Simulation(leaf_spine(2, 2, 1))
    late = sim.shape.hosts[1]
    sim.fabric.switches[late.place.dpid].down.add(late.place.port)
    sim.start()
    sim.run(30)
    assert not sim.plane.ready()
    sim.port(late.place, up=True)
    sim.run_until(sim.plane.ready, 3)
    assert all_deliver(sim)


def test_forged_frames_change_nothing() -> None:
    sim = running(leaf_spine(2, 2, 1))
    h1, h2 = sim.shape.hosts
    before = sim.plane.snapshot()
    link = sim.shape.links[0]
    frames = [
        encode_lldp(h2.place, sim.now, b"another key of 20 b."),
        encode_lldp(h1.place, sim.now, KEY),  # played back to the port it came from
        Arp(BROADCAST_MAC, h1.mac, REQUEST, h2.mac, h2.ipv4, NO_MAC, h1.ipv4).encode(),
        Arp(
            BROADCAST_MAC, "01:00:5e:00:00:01", REQUEST, "01:00:5e:00:00:01", "10.0.3.3", NO_MAC, "10.0.1.1"
        ).encode(),
        b"",
        b"\xff" * 200,
    ]
    for frame in frames:
        for cookie in (Rule.LLDP, Rule.ARP, 0, 2**64 - 1):
            sim.do(sim.plane.packet_in(*h1.place, cookie, frame, now=sim.now))
            sim.do(sim.plane.packet_in(77, 1, cookie, frame, now=sim.now))
    on_link = Arp(BROADCAST_MAC, h1.mac, REQUEST, h1.mac, h1.ipv4, NO_MAC, h2.ipv4).encode()
    sim.do(sim.plane.packet_in(*link.b, Rule.ARP, on_link, now=sim.now))
    sim.run(0.5)
    assert sim.plane.snapshot() == before
    assert sim.updates == []


def test_arguments_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="16 to 64 bytes"):
        ControlPlane(b"short")
    plane = ControlPlane(KEY)
    with pytest.raises(ValueError, match=r"'h1': 224\.0\.0\.1"):
        plane.agent_joined("h1", "224.0.0.1", "02:00:00:00:00:01", 0.0)
    with pytest.raises(ValueError, match="not an Ethernet address of one host"):
        plane.agent_joined("h1", "10.0.0.1", "ff:ff:ff:ff:ff:ff", 0.0)
    with pytest.raises(ValueError, match="above 0 s"):
        plane.set_scheme(CAPS, 0.0, 0.0)
    plane.port_changed(5, Port(1, "x", "02:00:00:00:00:01", True), 1.0)
    plane.switch_disconnected(5, 1.0)
    assert plane.deadline() is None
    assert not plane.ready()


def test_hosts_that_find_no_room_are_counted() -> None:
    hosts, place = Hosts(), PortRef(0x10001, 1)
    for number in range(HOSTS_PER_PORT + 5):
        hosts.seen(f"10.0.9.{number}", f"02:00:00:00:09:{number:02x}", place, 1.0, old_place_up=False)
    assert (len(list(hosts)), hosts.refused) == (HOSTS_PER_PORT, 5)
