"""Switches that show neither links nor agents have a budget, and keep none out that does."""

from __future__ import annotations

import pytest

from controller.fabric.arp import BROADCAST_MAC, NO_MAC, REQUEST, Arp
from controller.fabric.events import HostSeen
from controller.fabric.hosts import HOSTS_PER_PORT
from controller.fabric.switch_data import Held, HeldHost, Port
from controller.openflow.cookies import Rule
from controller.plane import isolated
from controller.plane.effects import Effects, SwitchDown, SwitchForgotten, SwitchTurnedAway, SwitchUp
from controller.plane.forgetting import FORGET_ISOLATED_AFTER_S
from controller.plane.isolated import GRACE_S
from tests.unit.controller.plane.test_control_plane import all_deliver, running
from tests.unit.fabric_shapes import leaf_spine
from tests.unit.simulated_fabric import Simulation

FIRST = 0x900000


@pytest.fixture
def fabric(monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """Return a fabric of five switches, and make room for four isolated switches with twenty ports together."""
    sim = running(leaf_spine(2, 3, 1))
    monkeypatch.setattr(isolated, "MOST_ISOLATED", 4)
    monkeypatch.setattr(isolated, "MOST_ISOLATED_PORTS", 20)
    return sim


def join(sim: Simulation, dpid: int, ports: int = 1) -> Effects:
    return sim.plane.switch_connected(dpid, [port(number + 1) for number in range(ports)], None, sim.now)


def port(number: int) -> Port:
    return Port(number, f"p{number}", "02:00:00:00:00:01", True)


def isolated_known(sim: Simulation) -> set[int]:
    return {switch.dpid for switch in sim.plane.snapshot().switches} - set(sim.shape.ports)


def test_isolated_switches_are_limited_and_the_fabric_goes_on(fabric: Simulation) -> None:
    for number in range(4):
        assert not join(fabric, FIRST + number).turned_away
    effects = join(fabric, FIRST + 4)
    assert "neither links nor agents" in effects.turned_away[FIRST + 4]
    assert [event.dpid for event in effects.events if isinstance(event, SwitchTurnedAway)] == [FIRST + 4]
    assert isolated_known(fabric) == set(range(FIRST, FIRST + 4))
    assert all_deliver(fabric)


def test_one_that_shows_nothing_makes_room_for_the_next(fabric: Simulation) -> None:
    for number in range(4):
        join(fabric, FIRST + number)
        fabric.now += 0.1
    fabric.now += GRACE_S
    effects = join(fabric, FIRST + 4)
    assert set(effects.turned_away) == {FIRST}
    assert isolated_known(fabric) == set(range(FIRST + 1, FIRST + 5))


def test_one_that_makes_room_is_gone_for_all_who_know_of_it(fabric: Simulation) -> None:
    """Of queues, modes and meters nothing stays that no later event would end."""
    events = []
    for number in range(4):
        events += join(fabric, FIRST + number).events
        say(fabric, FIRST + number, number + 1)
        fabric.now += 0.1
    fabric.now += GRACE_S
    events += fabric.plane.tick(fabric.now).events
    assert {mode.leaf for mode in fabric.plane.snapshot().modes} >= set(range(FIRST, FIRST + 4))
    for number in range(4, 7):
        effects = join(fabric, FIRST + number)
        events += effects.events
        for dpid in effects.turned_away:
            events += fabric.plane.switch_disconnected(dpid, fabric.now).events
    up = set()
    for event in events:
        if isinstance(event, SwitchUp):
            up.add(event.dpid)
        elif isinstance(event, SwitchDown):
            up.remove(event.dpid)
        elif isinstance(event, SwitchForgotten):
            assert event.dpid not in up
    assert up == isolated_known(fabric) == set(range(FIRST + 3, FIRST + 7))
    assert not {mode.leaf for mode in fabric.plane.snapshot().modes} & set(range(FIRST, FIRST + 3))


def test_switches_of_the_fabric_count_for_nothing(fabric: Simulation) -> None:
    for number in range(4):
        join(fabric, FIRST + number)
    spine = max(fabric.shape.ports)
    fabric.disconnect(spine)
    fabric.connect(spine)
    fabric.run(1.0)
    assert fabric.plane.snapshot().switches[-1].dpid == FIRST + 3
    assert all(switch.connected for switch in fabric.plane.snapshot().switches)


def test_ports_of_isolated_switches_have_a_number_together(fabric: Simulation) -> None:
    assert not join(fabric, FIRST, 15).turned_away
    assert set(join(fabric, FIRST + 1, 6).turned_away) == {FIRST + 1}
    assert not join(fabric, FIRST + 2, 5).turned_away
    effects = fabric.plane.port_changed(FIRST + 2, port(99), fabric.now)
    assert set(effects.turned_away) == {FIRST + 2}


def test_an_isolated_switch_that_is_away_is_forgotten_soon(fabric: Simulation) -> None:
    join(fabric, FIRST)
    fabric.plane.switch_disconnected(FIRST, fabric.now)
    deadline = fabric.plane.deadline()
    assert deadline is not None
    assert deadline <= fabric.now + FORGET_ISOLATED_AFTER_S
    fabric.now += FORGET_ISOLATED_AFTER_S
    effects = fabric.plane.tick(fabric.now)
    assert [event.dpid for event in effects.events if isinstance(event, SwitchForgotten)] == [FIRST]
    assert isolated_known(fabric) == set()


def test_many_ports_of_an_isolated_switch_get_no_meters_of_their_own() -> None:
    sim = running(leaf_spine(2, 3, 1))
    for dpid, count in ((FIRST, isolated.MANY_PORTS), (FIRST + 1, isolated.MANY_PORTS + 1)):
        join(sim, dpid, count)
    sim.now += 1.0
    sim.plane.tick(sim.now)
    meters = [len(sim.plane.wanted_state(dpid).meters) for dpid in (FIRST, FIRST + 1)]
    assert meters[0] >= isolated.MANY_PORTS + 1
    assert meters[1] < isolated.MANY_PORTS


def test_a_switch_that_gets_one_port_too_many_is_said_once_and_has_them_with_its_first_host(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A raw switch that adds more than 64 ports gets one update, which takes what it had of them, and no other."""
    sim = running(leaf_spine(2, 3, 1))
    join(sim, FIRST, isolated.MANY_PORTS)
    line = (
        f"switch {FIRST:#x} has {isolated.MANY_PORTS + 1} ports, no link and no host: none of its ports gets"
    )
    for number in range(5):
        sim.now += 1.0
        sim.plane.tick(sim.now)
        assert caplog.text.count(line) == min(number, 1)
        if number < 2:
            sim.plane.port_changed(FIRST, port(isolated.MANY_PORTS + 1), sim.now)
    assert len(sim.plane.wanted_state(FIRST).meters) < isolated.MANY_PORTS
    say(sim, FIRST, 1)
    sim.now += 1.0
    sim.plane.tick(sim.now)
    assert len(sim.plane.wanted_state(FIRST).meters) > isolated.MANY_PORTS


def arp_of(number: int) -> bytes:
    mac, ipv4 = f"02:00:00:09:{number >> 8:02x}:{number & 255:02x}", f"10.9.{number >> 8}.{number & 255}"
    return Arp(BROADCAST_MAC, mac, REQUEST, mac, ipv4, NO_MAC, ipv4).encode()


def say(sim: Simulation, dpid: int, number: int) -> None:
    """Announce a host behind a switch by ARP."""
    sim.plane.packet_in(dpid, 1, Rule.ARP, arp_of(number), now=sim.now)


def test_hosts_that_a_switch_invents_make_it_no_part_of_the_fabric(fabric: Simulation) -> None:
    for number in range(4):
        join(fabric, FIRST + number)
        say(fabric, FIRST + number, number + 1)
    assert {host.ipv4 for host in fabric.plane.snapshot().hosts} >= {
        f"10.9.0.{number}" for number in range(1, 5)
    }
    assert set(join(fabric, FIRST + 4).turned_away) == {FIRST + 4}
    for number in range(4):
        fabric.plane.switch_disconnected(FIRST + number, fabric.now)
    fabric.now += FORGET_ISOLATED_AFTER_S
    fabric.plane.tick(fabric.now)
    assert isolated_known(fabric) == set()
    assert not [host for host in fabric.plane.snapshot().hosts if host.ipv4.startswith("10.9.")]
    assert all_deliver(fabric)


def test_hosts_of_isolated_switches_have_a_number_together(
    fabric: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "MOST_ISOLATED_HOSTS", 5)
    before = len(fabric.plane.snapshot().hosts)
    for number in range(2):
        join(fabric, FIRST + number)
    for number in range(20):
        say(fabric, FIRST + number % 2, number + 1)
    assert len(fabric.plane.snapshot().hosts) == before + 5
    leaf = fabric.shape.hosts[0].place
    fabric.plane.packet_in(leaf.dpid, leaf.port, Rule.ARP, arp_of(99), now=fabric.now)
    assert len(fabric.plane.snapshot().hosts) == before + 6, "a switch of the fabric has room"


def test_what_has_no_room_is_refused_before_it_says_what_it_has(fabric: Simulation) -> None:
    for number in range(4):
        assert fabric.plane.refusal(FIRST + number, fabric.now) is None
        join(fabric, FIRST + number)
    assert "neither links nor agents" in (fabric.plane.refusal(FIRST + 4, fabric.now) or "")
    known = [FIRST, *fabric.shape.ports]
    assert [fabric.plane.refusal(dpid, fabric.now) for dpid in known] == [None] * len(known)
    fabric.now += GRACE_S
    assert fabric.plane.refusal(FIRST + 4, fabric.now) is None


def hold(sim: Simulation, dpid: int, hosts: list[HeldHost], remote: frozenset[str] = frozenset()) -> set[str]:
    """Have a switch with two ports connect that holds entries for these hosts; return which of them are believed."""
    ports = [port(1), port(2)]
    effects = sim.plane.switch_connected(dpid, ports, Held(tuple(hosts), remote), sim.now)
    return {event.ipv4 for event in effects.events if isinstance(event, HostSeen)}


def held(number: int, at: int = 1, mac: str = "") -> HeldHost:
    return HeldHost(
        f"10.77.{number >> 8}.{number & 255}", mac or f"02:77:00:00:{number >> 8:02x}:01", at, True
    )


def test_what_a_switch_holds_is_believed_as_little_as_its_arp(fabric: Simulation) -> None:
    honest = [held(1), held(2, at=2)]
    wrong = [
        held(3, at=3),
        held(4, at=0),
        held(5, mac=BROADCAST_MAC),
        held(6, mac="01:00:5e:00:00:01"),
        HeldHost("224.0.0.5", "02:00:00:00:00:05", 1, False),
        HeldHost("127.0.0.1", "02:00:00:00:00:06", 1, False),
        HeldHost("255.255.255.255", "02:00:00:00:00:07", 1, False),
    ]
    assert hold(fabric, FIRST, wrong + honest) == {host.ipv4 for host in honest}
    assert len(hold(fabric, FIRST + 1, [held(number) for number in range(300, 400)])) == HOSTS_PER_PORT


def test_hosts_that_isolated_switches_held_have_a_number(
    fabric: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "MOST_ISOLATED_HOSTS", 5)
    monkeypatch.setattr(isolated, "MOST_HELD_HOSTS", 8)
    counts = [
        len(hold(fabric, FIRST + index, [held(20 * index + number) for number in range(20)]))
        for index in range(3)
    ]
    assert counts == [5, 3, 0]


def test_what_a_switch_without_links_holds_changes_no_routes() -> None:
    """As long as a switch forwards by an older state no leaf carries others' packets: this one forwards none."""
    sim = running(leaf_spine(3, 2, 1))
    one, two, _ = sorted({host.place.dpid for host in sim.shape.hosts})
    spines = sorted(set(sim.shape.ports) - {host.place.dpid for host in sim.shape.hosts})
    for link in sim.shape.links:
        if {end.dpid for end in link} in ({one, spines[1]}, {two, spines[0]}):
            sim.cut(link)
    sim.run(2.0)
    assert all_deliver(sim), "by way of the third leaf"
    sim.connect_unasked(FIRST)
    hold(sim, FIRST, [], frozenset({"10.99.0.1"}))
    sim.run(1.0)
    assert all_deliver(sim)
