"""Modes and schemes under the control plane, over a simulated fabric."""

from __future__ import annotations

import dataclasses

from controller.openflow.cookies import Rule
from controller.openflow.tables import Table
from controller.plane.effects import ModeChanged, SchemeChanged
from protocol.underlay import TrafficClass
from tests.unit.controller.plane.started_fabric import all_deliver, need, running, since
from tests.unit.fabric_shapes import CAPS, ECMP, RPS, datagram, fat_tree, leaf_spine
from tests.unit.simulated_fabric import Simulation, short_rule


def test_the_first_short_packet_turns_its_leaf_on_and_silence_turns_it_off() -> None:
    sim = running(leaf_spine(2, 3, 1))
    h1, h2 = sim.shape.hosts
    leaf = h1.place.dpid
    assert short_rule(sim.fabric.switches[leaf].state) is Rule.FIRST_SHORT
    began = sim.now
    sim.send(datagram(h1, h2, TrafficClass.SHORT), h1)
    sim.run(0.005)
    assert [(dpid, count) for _, dpid, count in sim.updates] == [(leaf, 2)]
    assert short_rule(sim.fabric.switches[leaf].state) is Rule.CLASS
    [on] = since(sim, ModeChanged)
    assert (on.leaf, on.mode, on.cause) == (leaf, "on", "first-packet")  # type: ignore[attr-defined]
    assert [(one.leaf, one.mode) for one in sim.plane.snapshot().modes] == [(0x10001, "on"), (0x10002, "off")]
    for _ in range(20):
        sim.send(datagram(h1, h2, TrafficClass.SHORT), h1)
        sim.run(0.01)
    assert len(since(sim, ModeChanged)) == 1
    quiet = sim.now
    sim.run_until(lambda: len(since(sim, ModeChanged)) == 2, 1)
    assert 0.01 < sim.now - quiet < 0.025 + 0.015
    sim.run(1)
    assert len(since(sim, ModeChanged)) == 2
    assert [dpid for _, dpid, _ in sim.updates] == [leaf, leaf]
    assert sim.now > began
    assert short_rule(sim.fabric.switches[leaf].state) is Rule.FIRST_SHORT


def test_in_a_fat_tree_the_pods_aggregations_follow_their_leaves() -> None:
    sim = running(fat_tree(4, 1))
    h1, h2, far = sim.shape.hosts[0], sim.shape.hosts[1], sim.shape.hosts[-1]
    sim.send(datagram(h1, far, TrafficClass.SHORT), h1)
    sim.run(0.005)
    assert {dpid for _, dpid, _ in sim.updates} == {0x10001, 0x20001, 0x20002}
    sim.updates.clear()
    sim.send(datagram(h2, far, TrafficClass.SHORT), h2)
    sim.run(0.005)
    assert {dpid for _, dpid, _ in sim.updates} == {0x10002}
    sim.run(1)
    for dpid in sim.shape.ports:
        assert sim.plane.wanted_state(dpid) == sim.fabric.switches[dpid].state
    assert {one.mode for one in sim.plane.snapshot().modes} == {"off"}


def test_a_scheme_switch_sends_differences_only_and_cuts_no_host_off() -> None:
    sim = running(leaf_spine(3, 3, 1), ECMP)
    sim.after_update = lambda: need(all_deliver(sim))
    for scheme in (RPS, CAPS, ECMP):
        sim.updates.clear()
        sim.set_scheme(scheme)
        sim.run(0.1)
        assert {dpid for _, dpid, _ in sim.updates} == set(sim.shape.leaves)
        assert max(count for _, _, count in sim.updates) <= 3
    assert [event.scheme for event in since(sim, SchemeChanged)] == ["rps", "caps", "ecmp"]  # type: ignore[attr-defined]
    assert sim.plane.snapshot().modes == ()
    sim.updates.clear()
    sim.set_scheme(ECMP)
    assert sim.updates == []


def test_a_scheme_with_the_same_mode_rule_keeps_the_modes() -> None:
    sim = running(leaf_spine(2, 2, 1))
    h1, h2 = sim.shape.hosts
    sim.send(datagram(h1, h2, TrafficClass.SHORT), h1)
    sim.run(0.005)
    sim.set_scheme(dataclasses.replace(CAPS, name="caps-paper"))
    assert sim.plane.snapshot().modes[0].mode == "on"
    sim.set_scheme(CAPS, packet_time_s=0.008)
    assert sim.plane.snapshot().modes[0].mode == "off"
    assert short_rule(sim.fabric.switches[h1.place.dpid].state) is Rule.FIRST_SHORT


def test_before_any_scheme_is_set_traffic_is_hashed() -> None:
    sim = Simulation(leaf_spine(2, 2, 1))
    sim.start()
    sim.run_until(sim.plane.ready, 3)
    assert all_deliver(sim)
    assert all(
        flow.metadata == (1 << 19, 3 << 19)
        for flow in sim.fabric.switches[0x10001].state.flows.values()
        if flow.table == Table.CLASS and flow.priority == 10
    )
