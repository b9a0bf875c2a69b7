"""Path labels: the path that an agent names, whatever the fabric; another one where that is dead; never none."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.fabric.graph import Link, Wiring
from controller.fabric.hosts import Host
from controller.fabric.numbers import SwitchNumbers
from controller.fabric.paths import compute_routing
from controller.openflow.wanted import Difference, ToGroup, difference
from controller.plane.fabric_views import FabricViews
from protocol.underlay import (
    EV_FIRST,
    EV_LAST,
    LABEL_FIRST,
    LABEL_LAST,
    STAMP_LAST,
    TrafficClass,
    is_stamp,
    label_of,
)
from tests.unit.controller.openflow.pipeline_fabrics import AGENT_CLASSES, FAST
from tests.unit.fabric_shapes import (
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
from tests.unit.fake_tables import by_hash

Ways = dict[int, set[tuple[int, ...]]]


@st.composite
def fabrics(draw: st.DrawFn) -> tuple[Shape, list[Link]]:
    """Draw a fabric, perhaps with parallel links, and the links of it that are up: any may be down."""
    leaves, spines = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    shape = draw(st.sampled_from([leaf_spine(leaves, spines, 1), fat_tree(4, 1)]))
    for link in draw(st.lists(st.sampled_from(shape.links), max_size=2)):
        shape.add_link(link.a.dpid, link.b.dpid)
    down = draw(st.sets(st.sampled_from(shape.links), max_size=5))
    return shape, [link for link in shape.links if link not in down]


def ways_by_stamp(shape: Shape, up: list[Link], source: int, target: int) -> Ways:
    """Return the equal-cost paths, by brute force, under the stamp that each one's packets get.

    A dpid's upper digits are its tier: the first switch that is followed by one of a lower tier writes its stamp.
    """
    ways: Ways = {}
    for way in shortest_paths(up, shape.leaves, source, target):
        turn = next(one for one, after in itertools.pairwise(way) if after >> 16 < one >> 16)
        ways.setdefault(stamp_of(shape, turn), set()).add(way)
    return ways


def views_of(shape: Shape, up: list[Link]) -> FabricViews:
    numbers = SwitchNumbers()
    numbers.assign(shape.ports)
    wiring = Wiring(frozenset(shape.links), frozenset(up), shape.leaves, frozenset(shape.ports))
    hosts = [Host(host.ipv4, host.mac, host.name, True, host.place) for host in shape.hosts]
    return FabricViews(hosts, compute_routing(wiring), wiring.known, numbers, ports={})


def taken(
    fabric: FakeFabric, source: SimHost, target: SimHost, port: int, kind: TrafficClass
) -> Mapping[tuple[int, ...], int]:
    """Return every way that a datagram from UDP port *port* may take, with the port that it arrives with."""
    traces = fabric.traces(datagram(source, target, kind, port), source.place)
    assert all(trace.place == target.place for trace in traces), "dropped on some way"
    return {trace.switches: trace.packet.udp_src for trace in traces}


@pytest.mark.slow
@FAST
@given(fabrics(), st.data())
def test_a_label_is_the_path_that_it_names_exactly_and_any_other_port_is_sprayed(
    made: tuple[Shape, list[Link]], data: st.DataObject
) -> None:
    shape, up = made
    source = data.draw(st.sampled_from(shape.hosts))
    kind = data.draw(st.sampled_from(AGENT_CLASSES))
    fabric = static_fabric(shape, LABELS, up=up)
    for target in shape.hosts:
        if target.place.dpid == source.place.dpid:
            continue
        ways = ways_by_stamp(shape, up, source.place.dpid, target.place.dpid)
        for stamp, named in ways.items():
            assert taken(fabric, source, target, label_of(stamp), kind) == dict.fromkeys(named, stamp)
        if not ways:
            continue  # cut off, or only by way of another leaf
        every = {way: stamp for stamp, some in ways.items() for way in some}
        dead = data.draw(
            st.sampled_from(sorted(set(range(LABEL_FIRST + 1, LABEL_LAST + 1)) - {*map(label_of, ways)}))
        )
        assert taken(fabric, source, target, dead, kind) == every
        assert taken(fabric, source, target, data.draw(st.integers(EV_FIRST, EV_LAST)), kind) == every


@FAST
@given(fabrics())
def test_agents_get_exactly_the_paths_that_there_are(made: tuple[Shape, list[Link]]) -> None:
    shape, up = made
    views = views_of(shape, up)
    for source in shape.leaves:
        reported = views.stamps(source)
        assert source not in reported
        for target in shape.leaves - {source}:
            expected = ways_by_stamp(shape, up, source, target)
            if expected:
                assert reported[target] == tuple(sorted(expected))
                assert all(map(is_stamp, reported[target]))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["leaf-spine", "fat-tree", "parallel"]), st.data())
def test_a_label_whose_link_has_just_died_is_sprayed_by_the_switch_itself(
    kind: str, data: st.DataObject
) -> None:
    """Before the controller knows of it: nothing goes up a dead link, and nothing that can go up is lost."""
    shape = fat_tree(4, 1) if kind == "fat-tree" else leaf_spine(3, 3, 1)
    if kind == "parallel":
        for leaf in shape.leaves:
            shape.add_link(leaf, 0x20001)
    fabric = static_fabric(shape, LABELS)
    gone = data.draw(st.sampled_from(shape.links))
    ends = {gone.a.dpid, gone.b.dpid}
    down = [link for link in shape.links if {link.a.dpid, link.b.dpid} == ends]
    for link in down:
        fabric.cut(link)
    up = [link for link in shape.links if link not in down]
    lower = min(ends)
    for source in shape.hosts:
        for target in shape.hosts:
            if source == target:
                continue
            before = ways_by_stamp(shape, shape.links, source.place.dpid, target.place.dpid)
            if not any(lower in way[: len(way) // 2] for named in before.values() for way in named):
                continue
            alive = shortest_paths(up, shape.leaves, source.place.dpid, target.place.dpid)
            for stamp, named in before.items():
                traces = fabric.traces(
                    datagram(source, target, TrafficClass.LONG, label_of(stamp)), source.place
                )
                upward = [trace for trace in traces if lower in trace.switches[: len(trace.switches) // 2]]
                assert all(trace.place == target.place for trace in upward)
                if {way for way in named if lower in way[: len(way) // 2]} <= alive:
                    assert {trace.switches for trace in upward} <= named
                else:
                    assert upward, "no other way was taken"
                    assert {trace.switches for trace in upward} <= alive


def test_only_a_scheme_with_labels_has_entries_for_them_and_spines_are_the_same_under_all() -> None:
    shape = fat_tree(4, 1)
    without, having = static_fabric(shape, RPS), static_fabric(shape, LABELS)
    for dpid in shape.ports:
        change = difference(without.switches[dpid].state, having.switches[dpid].state)
        if dpid >> 16 == 3:
            assert change == Difference()
            continue
        assert not change.delete_flows
        assert not change.delete_groups
        assert {group.method for group in change.add_groups} == {"failover"}


@pytest.mark.parametrize(("spines", "hosts"), [(4, 2), (20, 1)])
def test_labels_of_all_destinations_share_one_group_a_path(spines: int, hosts: int) -> None:
    shape = leaf_spine(6, spines, hosts)
    state = static_fabric(shape, LABELS).switches[0x10001].state
    failover = [group for group in state.groups.values() if group.method == "failover"]
    assert len(failover) == spines
    used = {
        action.group
        for flow in state.flows.values()
        for action in flow.actions
        if isinstance(action, ToGroup)
    }
    assert {group.id for group in failover} <= used


def test_labels_of_a_class_served_otherwise_mean_nothing() -> None:
    shape = leaf_spine(2, 4, 1)
    source, target = shape.hosts
    label = label_of(stamp_of(shape, 0x20003))
    assert len(taken(static_fabric(shape, RPS), source, target, label, TrafficClass.SHORT)) == 4
    plain = static_fabric(shape, LABELS).traces(
        datagram(source, target, TrafficClass.NONE, label), source.place
    )
    assert {trace.packet.udp_src for trace in plain} == {label}
    assert len(plain) == 4


def test_labels_of_dead_paths_spread_over_the_live_ones() -> None:
    shape = leaf_spine(2, 8, 1)
    source, target = shape.hosts
    fabric = static_fabric(shape, LABELS, up=shape.without(0x20008))
    label = label_of(stamp_of(shape, 0x20008))
    ways = {
        fabric.traces(datagram(source, target, TrafficClass.LONG, label, key), source.place, by_hash)[
            0
        ].switches
        for key in range(64)
    }
    assert len(ways) == 7


def test_labels_and_stamps() -> None:
    assert (label_of(1), label_of(STAMP_LAST)) == (8193, 12287)
    for wrong in (0, -1, STAMP_LAST + 1):
        with pytest.raises(ValueError, match=r"must be 1\.\.4095"):
            label_of(wrong)
