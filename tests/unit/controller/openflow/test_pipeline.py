"""Whole fabrics of fake tables: who reaches whom, over which paths, with which fields, also with parts down."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.fabric.graph import Link
from controller.openflow.choosing import basis_of
from controller.openflow.cookies import Rule
from controller.openflow.punts import punt_flows, punt_meters
from controller.openflow.tables import ETH_ARP, ETH_LLDP, PORT_METERS, PUNT_METER, SHORT_METER
from controller.openflow.wanted import (
    Bucket,
    Difference,
    FlowRule,
    Group,
    Match,
    Output,
    SwitchState,
    ToGroup,
    difference,
)
from protocol.underlay import BASE_PORT, EV_FIRST, EV_LAST, FLOW_KEYS, PRIORITIES, TrafficClass
from tests.unit.controller.openflow.pipeline_fabrics import AGENT_CLASSES, FAST, shapes
from tests.unit.fabric_shapes import (
    CAPS,
    ECMP,
    LABELS,
    RPS,
    Shape,
    SimHost,
    datagram,
    fat_tree,
    leaf_spine,
    shortest_paths,
    stamp_of,
    static_fabric,
)
from tests.unit.fake_fabric import FakeFabric
from tests.unit.fake_tables import FakeTablesError, Packet, by_hash

schemes = st.sampled_from([None, ECMP, RPS, CAPS, LABELS])


@st.composite
def fabrics(draw: st.DrawFn) -> tuple[Shape, list[Link]]:
    """Draw a shape and the links that are up: all, all but one, or all but one switch's above the leaves."""
    shape = draw(shapes)
    upper = sorted(shape.ports.keys() - shape.leaves)
    failure = draw(st.sampled_from(["none", "link", "switch"]))
    if failure == "link":
        gone = draw(st.sampled_from(shape.links))
        return shape, [link for link in shape.links if link != gone]
    if failure == "switch":
        return shape, shape.without(draw(st.sampled_from(upper)))
    return shape, shape.links


def check_pair(
    fabric: FakeFabric, shape: Shape, up: list[Link], source: SimHost, target: SimHost, packet: Packet
) -> None:
    """Assert that *packet* takes all of the equal-cost paths and no other, and arrives as it should."""
    expected = shortest_paths(up, shape.leaves, source.place.dpid, target.place.dpid)
    traces = fabric.traces(packet, source.place)
    delivered = {trace.switches for trace in traces if trace.place is not None}
    assert delivered == expected
    if expected:
        assert len(traces) == len(delivered), "dropped on some way, or twice on one"
    agents = packet.ip_dscp != 0
    for trace in traces:
        if trace.place is None:
            continue
        assert trace.place == target.place
        middle = trace.switches[len(trace.switches) // 2]
        stamped = agents and len(trace.switches) > 1
        assert trace.packet == dataclasses.replace(
            packet,
            eth_dst=target.mac,
            udp_dst=BASE_PORT if agents else packet.udp_dst,
            udp_src=stamp_of(shape, middle) if stamped else packet.udp_src,
        )


@FAST
@given(fabrics(), schemes, st.data())
def test_every_pair_reaches_each_other_over_every_equal_cost_path_exactly(
    made: tuple[Shape, list[Link]], scheme: object, data: st.DataObject
) -> None:
    shape, up = made
    source = data.draw(st.sampled_from(shape.hosts))
    kind = data.draw(st.sampled_from(AGENT_CLASSES))
    ev = data.draw(st.integers(EV_FIRST, EV_LAST))
    key = data.draw(st.integers(0, FLOW_KEYS - 1))
    priority = data.draw(st.integers(0, PRIORITIES - 1))
    on = frozenset(data.draw(st.sets(st.sampled_from(sorted(shape.leaves)))))
    fabric = static_fabric(shape, scheme, up=up, on=on)  # type: ignore[arg-type]
    for target in shape.hosts:
        if target != source:
            check_pair(fabric, shape, up, source, target, datagram(source, target, kind, ev, key, priority))
            plain = datagram(source, target, TrafficClass.NONE, ev, key)
            check_pair(fabric, shape, up, source, target, plain)


@FAST
@given(
    st.one_of(st.builds(leaf_spine, st.integers(2, 3), st.integers(2, 4), st.just(1)), st.just(None)),
    st.data(),
)
def test_a_local_failure_is_the_groups_before_anything_is_recomputed(
    shape: Shape | None, data: st.DataObject
) -> None:
    shape = shape or fat_tree(4, 1)
    fabric = static_fabric(shape, CAPS, on=shape.leaves if data.draw(st.booleans()) else frozenset())
    gone = data.draw(st.sampled_from(shape.links))
    fabric.cut(gone)
    up = [link for link in shape.links if link != gone]
    lower = min(gone.a.dpid, gone.b.dpid)
    for source in shape.hosts:
        for target in shape.hosts:
            ways = shortest_paths(shape.links, shape.leaves, source.place.dpid, target.place.dpid)
            upward = {way for way in ways if lower in way[: len(way) // 2]}
            if target.place.dpid == source.place.dpid or not upward:
                continue
            kind = data.draw(st.sampled_from(AGENT_CLASSES))
            traces = fabric.traces(datagram(source, target, kind), source.place)
            found = {
                trace.switches for trace in traces if lower in trace.switches[: len(trace.switches) // 2]
            }
            alive = shortest_paths(up, shape.leaves, source.place.dpid, target.place.dpid)
            assert found == upward & alive
            # Nothing is dropped but what comes down to the dead link from above.
            assert all(t.place == target.place for t in traces if lower in t.switches[: len(t.switches) // 2])


@FAST
@given(fabrics(), schemes, st.data())
def test_a_host_sends_from_no_other_hosts_address(
    made: tuple[Shape, list[Link]], scheme: object, data: st.DataObject
) -> None:
    """Its own address and one that no host has go on, whatever the class; all other hosts' are dropped at its leaf."""
    shape, up = made
    kind = data.draw(st.sampled_from([TrafficClass.NONE, *AGENT_CLASSES]))
    attacker = data.draw(st.sampled_from(shape.hosts))
    target = data.draw(st.sampled_from([host for host in shape.hosts if host != attacker]))
    fabric = static_fabric(shape, scheme, up=up)  # type: ignore[arg-type]
    packet = datagram(attacker, target, kind)
    passes = [trace.place for trace in fabric.traces(packet, attacker.place)]
    unknown = dataclasses.replace(packet, ipv4_src="10.77.7.7")
    assert [trace.place for trace in fabric.traces(unknown, attacker.place)] == passes
    for host in shape.hosts:
        if host != attacker:
            forged = dataclasses.replace(packet, ipv4_src=host.ipv4)
            (trace,) = fabric.traces(forged, attacker.place)
            assert trace.place is None
            assert trace.switches == (attacker.place.dpid,)


@pytest.mark.parametrize(("spines", "keys"), [(4, 64), (5, 64)])
def test_ecmp_keeps_a_flow_on_one_path_whatever_its_entropy(spines: int, keys: int) -> None:
    shape = leaf_spine(2, spines, 1)
    fabric = static_fabric(shape, ECMP)
    source, target = shape.hosts
    used: Counter[int] = Counter()
    for key in range(keys):
        ways = {
            fabric.traces(datagram(source, target, TrafficClass.LONG, ev, key), source.place, by_hash)[
                0
            ].switches
            for ev in range(EV_FIRST, EV_LAST, 7919)
        }
        assert len(ways) == 1
        used[ways.pop()[1]] += 1
    assert len(used) == spines


def test_caps_hashes_long_flows_while_on_and_sprays_them_while_off() -> None:
    shape = leaf_spine(2, 4, 1)
    source, target = shape.hosts
    for on, paths in ((shape.leaves, 1), (frozenset[int](), 4)):
        fabric = static_fabric(shape, CAPS, on=on)
        for kind, expected in (
            (TrafficClass.LONG, paths),
            (TrafficClass.SHORT, 4),
            (TrafficClass.CONTROL, 4),
        ):
            ways = {
                fabric.traces(datagram(source, target, kind, ev), source.place, by_hash)[0].switches
                for ev in range(EV_FIRST, EV_LAST, 499)
            }
            assert len(ways) == expected, (on, kind)


def test_in_a_fat_tree_a_long_flow_keeps_to_one_path_all_the_way_up_while_its_leaf_is_on() -> None:
    shape = fat_tree(4, 1)
    source, target = shape.hosts[0], shape.hosts[-1]
    for on, paths in ((frozenset((source.place.dpid,)), 1), (frozenset[int](), 4)):
        fabric = static_fabric(shape, CAPS, on=on)
        ways = {
            fabric.traces(datagram(source, target, TrafficClass.LONG, ev), source.place, by_hash)[0].switches
            for ev in range(EV_FIRST, EV_LAST, 499)
        }
        assert len(ways) == paths


def test_short_datagrams_that_leave_their_leaf_are_metered_there_and_copied_only_while_off() -> None:
    shape = fat_tree(4, 2)
    source, neighbour, target = shape.hosts[0], shape.hosts[1], shape.hosts[-1]
    leaf = source.place.dpid
    for on, copies in ((frozenset[int](), [(source.place, int(Rule.FIRST_SHORT))]), (frozenset((leaf,)), [])):
        fabric = static_fabric(shape, CAPS, on=on)
        for kind in (*AGENT_CLASSES, TrafficClass.NONE):
            fabric.traces(datagram(source, target, kind), source.place, by_hash)
            fabric.traces(datagram(source, neighbour, kind), source.place, by_hash)
        assert fabric.punted == copies
        counts = {
            dpid: switch.meter_counts for dpid, switch in fabric.switches.items() if switch.meter_counts
        }
        assert counts == {leaf: {SHORT_METER: 1}}


@pytest.mark.parametrize(("eth_type", "rule"), [(ETH_LLDP, Rule.LLDP), (ETH_ARP, Rule.ARP)])
def test_what_goes_to_the_controller_passes_its_ports_own_meter(eth_type: int, rule: Rule) -> None:
    shape = leaf_spine(2, 2, 1)
    for switch in static_fabric(shape, CAPS).switches.values():
        for number, meter in ((1, PORT_METERS + 1), (2, PORT_METERS + 2), (77, PUNT_METER)):
            [outcome] = switch.outcomes(Packet(eth_type=eth_type, ip_proto=0), number)
            assert (outcome.metered, outcome.punted) == ((meter,), (rule,))
            assert switch.state.meters[meter].most_pps


def test_a_scheme_without_modes_needs_no_meter_and_no_copies() -> None:
    shape = leaf_spine(2, 2, 1)
    fabric = static_fabric(shape, RPS)
    fabric.traces(datagram(*shape.hosts, TrafficClass.SHORT), shape.hosts[0].place)
    assert fabric.punted == []
    assert not any(min(switch.state.meters) < PUNT_METER for switch in fabric.switches.values())


def test_the_only_way_through_another_leaf_is_used() -> None:
    shape = leaf_spine(3, 2, 1)
    ends = {(0x10001, 0x20002), (0x10002, 0x20001)}
    up = [link for link in shape.links if (link.a.dpid, link.b.dpid) not in ends]
    source, target = shape.hosts[:2]
    traces = static_fabric(shape, CAPS, up=up).traces(
        datagram(source, target, TrafficClass.LONG), source.place
    )
    assert [trace.switches for trace in traces] == [(0x10001, 0x20001, 0x10003, 0x20002, 0x10002)]
    assert traces[0].place == target.place
    assert traces[0].packet.udp_src == stamp_of(shape, 0x20001)


def test_parallel_links_are_paths_of_their_own_and_the_stamp_survives_hashing() -> None:
    shape = leaf_spine(2, 1, 1)
    for leaf in (0x10001, 0x10002):
        shape.add_link(leaf, 0x20001)
    source, target = shape.hosts
    for on in (frozenset[int](), shape.leaves):
        fabric = static_fabric(shape, CAPS, on=on)
        for kind in (*AGENT_CLASSES, TrafficClass.NONE):
            traces = fabric.traces(datagram(source, target, kind), source.place)
            assert len(traces) == 4
            assert {trace.place for trace in traces} == {target.place}
            stamp = stamp_of(shape, 0x20001) if kind else 40000
            assert {trace.packet.udp_src for trace in traces} == {stamp}


def test_two_stages_of_hashing_do_not_polarise() -> None:
    assert len({basis_of(dpid) for dpid in range(1000)}) == 1000
    shape = fat_tree(4, 1)
    source, target = shape.hosts[0], shape.hosts[-1]
    fabric = static_fabric(shape, RPS)
    used = Counter(
        fabric.traces(datagram(source, target, TrafficClass.LONG, ev), source.place, by_hash)[0].switches
        for ev in range(EV_FIRST, EV_LAST, 61)
    )
    assert len(used) == 4
    assert min(used.values()) > 0.2 * used.total()


def test_destinations_with_the_same_next_hops_share_groups_until_a_link_fails() -> None:
    shape = leaf_spine(4, 3, 1)
    leaf = shape.hosts[0].place.dpid
    assert len(static_fabric(shape, CAPS).switches[leaf].state.groups) == 2
    gone = next(link for link in shape.links if {link.a.dpid, link.b.dpid} == {0x10003, 0x20002})
    failed = static_fabric(shape, CAPS, up=[link for link in shape.links if link != gone])
    assert len(failed.switches[leaf].state.groups) == 4
    assert failed.switches[gone.b.dpid].state.groups == {}


def test_every_bucket_watches_the_port_that_it_uses() -> None:
    for switch in static_fabric(fat_tree(4, 1), CAPS).switches.values():
        for group in switch.state.groups.values():
            for bucket in group.buckets:
                assert Output(bucket.watch_port or 0) in bucket.actions


def test_a_mode_change_is_a_change_of_two_entries() -> None:
    shape = leaf_spine(20, 4, 1)
    off, on = static_fabric(shape, CAPS), static_fabric(shape, CAPS, on=frozenset((0x10001,)))
    for dpid in shape.ports:
        change = difference(off.switches[dpid].state, on.switches[dpid].state)
        assert len(change.add_flows) == (2 if dpid == 0x10001 else 0)
        assert dataclasses.replace(change, add_flows=()) == Difference()


def test_the_interpreter_refuses_what_a_switch_would() -> None:
    shape = leaf_spine(2, 2, 1)
    switch = static_fabric(shape, CAPS).switches[0x10001]
    group = next(iter(switch.state.groups))
    with pytest.raises(FakeTablesError, match="which is not there"):
        switch.apply(Difference(delete_groups=(group,)))
    with pytest.raises(FakeTablesError, match="jumps back"):
        switch.apply(Difference(add_flows=(FlowRule(2, 5, Match(), goto=1),)))
    with pytest.raises(FakeTablesError, match="without eth_type"):
        switch.apply(Difference(add_flows=(FlowRule(2, 5, Match(udp_src=(1, 1))),)))
    for lost in (Bucket((ToGroup(77),), 1), Bucket((Output(1),), watch_group=77)):
        with pytest.raises(FakeTablesError, match="group 5 needs group 77"):
            switch.apply(Difference(add_groups=(Group(5, "failover", 0, (lost,)),)))
    with pytest.raises(FakeTablesError, match="leads to itself"):
        switch.apply(Difference(add_groups=(Group(5, "failover", 0, (Bucket((ToGroup(5),), 1),)),)))
    switch.apply(Difference(add_flows=(FlowRule(0, 10, Match(ip_proto=17, eth_type=0x800)),)))
    with pytest.raises(FakeTablesError, match="overlap"):
        switch.outcomes(Packet(ipv4_dst="10.0.1.1"), 1)


def test_a_switch_of_which_nothing_is_known_sends_up_lldp_and_arp() -> None:
    fabric = FakeFabric()
    from tests.unit.fake_tables import FakeSwitch

    fabric.switches[1] = FakeSwitch(
        SwitchState({flow.key: flow for flow in punt_flows()}, meters=punt_meters())
    )
    lldp = fabric.switches[1].outcomes(Packet(eth_type=0x88CC), 1)
    arp = fabric.switches[1].outcomes(Packet(eth_type=0x0806), 1)
    assert [one.punted for one in lldp] == [(Rule.LLDP,)]
    assert [one.punted for one in arp] == [(Rule.ARP,)]


@pytest.mark.parametrize("kind", AGENT_CLASSES)
@pytest.mark.parametrize("hosts", [1, 2])
def test_what_comes_by_a_link_that_is_not_known_yet_is_for_own_hosts_or_dropped(
    hosts: int, kind: TrafficClass
) -> None:
    """After a restart a switch that has not come back may hold that a host is where it was, and send packets there."""
    shape = leaf_spine(3, 2, hosts)
    h1, h3 = shape.hosts[0], shape.hosts[-1]
    moved, *stayed = shape.hosts[hosts : 2 * hosts]
    leaf, away = moved.place.dpid, 0x20001
    (port,) = [link.a.port for link in shape.links if (link.a.dpid, link.b.dpid) == (leaf, away)]
    shape = dataclasses.replace(shape, hosts=[host for host in shape.hosts if host != moved])
    switch = static_fabric(shape, RPS, known=shape.without(away)).switches[leaf]
    (outcome,) = switch.outcomes(datagram(h1, h3, kind), port)
    assert outcome.sent == ()
    for host in stayed:
        (outcome,) = switch.outcomes(datagram(h1, host, kind), port)
        assert [sent for sent, _ in outcome.sent] == [host.place.port]
        (outcome,) = switch.outcomes(datagram(host, h3, kind), host.place.port)
        assert len(outcome.sent) == 1
