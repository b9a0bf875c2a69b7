"""Shapes, names and addresses of fabrics, and the errors of a wrong description."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.addressing import HostPlace, datapath_id, link_name, place_hosts, port_mac
from topologies.fabric_spec import FabricSpec, FabricSpecError
from topologies.fat_tree import FatTree
from topologies.leaf_spine import LeafSpine
from topologies.links import Link

ROOT = Path(__file__).resolve().parents[3]


def neighbours(topo: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in topo.nodes()}
    for end, other in topo.links():
        assert other not in found[end], "two links between the same nodes"
        found[end].add(other)
        found[other].add(end)
    return found


@settings(max_examples=25)
@given(st.integers(1, 8), st.integers(1, 20), st.integers(1, 8))
def test_leaf_spine(leaves: int, spines: int, hosts_per_leaf: int) -> None:
    topo = LeafSpine(leaves, spines, hosts_per_leaf)
    near = neighbours(topo)
    all_leaves = {f"l{n}" for n in range(1, leaves + 1)}
    all_spines = {f"s{n}" for n in range(1, spines + 1)}
    assert set(topo.switches()) == all_leaves | all_spines
    for spine in all_spines:
        assert near[spine] == all_leaves
    for number in range(1, leaves * hosts_per_leaf + 1):
        assert near[f"h{number}"] == {f"l{(number - 1) // hosts_per_leaf + 1}"}
    for leaf in all_leaves:
        assert near[leaf] & all_spines == all_spines
    # a leaf's first ports are its hosts': the same numbers on every leaf
    assert topo.port("l1", "h1")[0] == 1
    assert topo.port("l1", "s1")[0] == hosts_per_leaf + 1


@pytest.mark.parametrize("k", [2, 4, 6])
def test_fat_tree_has_every_path(k: int) -> None:
    half = k // 2
    topo = FatTree(k)
    near = neighbours(topo)
    tiers = Counter(name[0] for name in topo.nodes())
    assert tiers == {"e": k * half, "a": k * half, "c": half * half, "h": k * half * half}
    for name in topo.switches():
        assert len(near[name]) == k, name
    pod = {name: (int(name[1:]) - 1) // half for name in topo.switches() if name[0] in "ea"}
    for end, other in itertools.combinations([name for name in pod if name[0] == "e"], 2):
        over = [
            core
            for up in near[end]
            if up[0] == "a"
            for core in near[up]
            if core[0] == "c"
            for down in near[core]
            if other in near[down]
        ]
        if pod[end] != pod[other]:
            assert sorted(over) == sorted(f"c{n}" for n in range(1, half * half + 1))
        else:
            assert len([up for up in near[end] & near[other] if up[0] == "a"]) == half


def test_fat_tree_hosts_count_edges_over_all_pods() -> None:
    topo = FatTree(4, hosts_per_leaf=3)
    place = topo.nodeInfo("h7")["place"]
    assert (place.leaf, place.place, place.underlay) == (3, 1, "10.0.3.1")
    assert topo.port("h7", "e3")[0] == 0


@pytest.mark.slow
@given(st.integers(1, 255), st.integers(0, 20))
def test_addresses_are_unique(leaves: int, hosts_per_leaf: int) -> None:
    hosts = place_hosts(leaves, hosts_per_leaf)
    assert [host.name for host in hosts] == [f"h{n + 1}" for n in range(leaves * hosts_per_leaf)]
    for attribute in ("underlay", "overlay", "overlay6", "mac"):
        assert len({getattr(host, attribute) for host in hosts}) == len(hosts)


def test_addresses_of_one_host() -> None:
    host = HostPlace(number=21, leaf=11, place=1)
    assert host.underlay == "10.0.11.1"
    assert host.overlay == "10.128.11.1"
    assert host.overlay6 == "fd00:ca::b:1"


def test_datapath_ids_can_be_read() -> None:
    assert datapath_id("l1") == "0000000000010001"
    assert datapath_id("s12") == "0000000000020012"
    assert datapath_id("c3") == "0000000000030003"
    names = [f"{tier}{n}" for tier in "lsc" for n in range(1, 300)]
    assert len({datapath_id(name) for name in names}) == len(names)
    for wrong in ("x1", "l0", "l", "l12345"):
        with pytest.raises(ValueError, match=wrong):
            datapath_id(wrong)


def test_ports_have_their_own_addresses() -> None:
    topo = FabricSpec(leaves=8, spines=20, hosts_per_leaf=8).topo()
    ports = [f"{name}-eth{number}" for name in topo.switches() for number in topo.ports[name]]
    macs = {port_mac(name) for name in ports}
    assert len(macs) == len(ports)
    assert all(int(mac[:2], 16) & 3 == 2 for mac in macs)  # locally administered, not a group


def test_a_link_has_one_name() -> None:
    for first, second, name in (("s3", "l1", "l1-s3"), ("l2", "h7", "h7-l2"), ("a1", "c2", "a1-c2")):
        assert link_name(first, second) == link_name(second, first) == name


def test_overrides_shape_single_links() -> None:
    spec = FabricSpec.from_dict(
        {
            "leaves": 2,
            "spines": 3,
            "link": {"rate_mbps": 10, "buffer_packets": 64},
            "access": {"rate_mbps": 50},
            "overrides": {"s3-l1": {"rate_mbps": 2}, "h1-l1": {"buffer_packets": 9}},
        }
    )
    shapes = {link_name(end, other): info["shape"] for end, other, info in spec.topo().links(withInfo=True)}
    assert shapes["l1-s3"] == Link(2, 64)
    assert shapes["l1-s2"] == Link(10, 64)
    assert shapes["h1-l1"] == Link(50, 9)
    assert shapes["h2-l1"] == Link(50)
    assert spec.slowest_link_mbps == 2
    assert set(spec.link_names()) == set(shapes)


SPECS = st.builds(
    FabricSpec,
    topology=st.sampled_from(["leaf-spine", "fat-tree"]),
    leaves=st.integers(1, 4),
    spines=st.integers(1, 4),
    hosts_per_leaf=st.none() | st.integers(1, 4),
    k=st.sampled_from([2, 4]),
    link=st.builds(Link, rate_mbps=st.none() | st.integers(1, 100)),
    access=st.builds(Link, rate_mbps=st.none() | st.integers(1, 100)),
    mtu=st.integers(1280, 9000),
)


@settings(max_examples=40)
@given(SPECS, st.data())
def test_round_trip_through_json(spec: FabricSpec, data: st.DataObject) -> None:
    names = spec.link_names()
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    plain = {**spec.to_dict(), "overrides": {name: {"rate_mbps": 1} for name in chosen}, "down": chosen}
    full = FabricSpec.from_dict(plain)
    assert FabricSpec.from_dict(json.loads(json.dumps(full.to_dict()))) == full
    assert list(full.down) == chosen
    assert [host.name for host in full.hosts()] == full.topo().hosts()


@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        ({"topology": "torus"}, "topology", "leaf-spine"),
        ({"leafs": 2}, "leafs", "did you mean 'leaves'"),
        ({"leaves": 0}, "leaves", "1..255"),
        ({"leaves": 2.5}, "leaves", "whole number"),
        ({"spines": True}, "spines", "whole number"),
        ({"topology": "fat-tree", "k": 3}, "k", "even"),
        ({"hosts_per_leaf": 0}, "hosts_per_leaf", "1..254"),
        ({"mtu": 500}, "mtu", "1280"),
        ({"link": {"rate_mbps": 0}}, "link", "rate_mbps"),
        ({"link": 10}, "link", "mapping"),
        ({"access": {"rate": 10}}, "access", "'rate' is not known"),
        ({"overrides": {"l1-s9": {"rate_mbps": 1}}}, "overrides.l1-s9", "did you mean"),
        ({"overrides": {"l1-s1": {"rate_mbps": 0}}}, "overrides.l1-s1", "rate_mbps"),
        ({"overrides": ["l1-s1"]}, "overrides", "must map"),
        ({"overrides": {"l1-s1": {}, "s1-l1": {}}}, "overrides.s1-l1", "is l1-s1, which is there already"),
        ({"down": "l1-s1"}, "down", "list"),
        ({"down": ["l1-l2"]}, "down.l1-l2", "no link"),
    ],
)
def test_errors_name_the_field(data: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(FabricSpecError, match=says) as caught:
        FabricSpec.from_dict(data)
    assert caught.value.where == field


@pytest.mark.parametrize(
    ("file", "topo", "counts"),
    [("leaf_spine.py", "leafspine,2,4,2,10,50", [4, 6, 12]), ("fat_tree.py", "fattree,4,2", [16, 20, 48])],
)
def test_mininet_can_read_the_file_from_anywhere(
    file: str, topo: str, counts: list[int], tmp_path: Path
) -> None:
    """What `mn --custom FILE --topo NAME,ARGS` does, by the machine's own python3 and Mininet."""
    code = (
        "import sys; from mininet.util import buildTopo; names = {}\n"
        "exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'), names, names)\n"
        "topo = buildTopo(names['topos'], sys.argv[2])\n"
        "print([len(topo.hosts()), len(topo.switches()), len(topo.links())])\n"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code, str(ROOT / "topologies" / file), topo],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == counts


@given(
    spec=st.builds(
        FabricSpec, leaves=st.integers(1, 12), spines=st.integers(1, 12), hosts_per_leaf=st.integers(1, 12)
    )
    | st.builds(FabricSpec, topology=st.just("fat-tree"), k=st.sampled_from([2, 4, 6]))
)
@settings(max_examples=30, deadline=None)
def test_names_are_those_of_the_mininet_topology_in_its_order(spec: FabricSpec) -> None:
    topo = spec.topo()
    assert spec.link_names() == [link_name(end, other) for end, other in topo.links(sort=True)]
    assert [host.name for host in spec.hosts()] == topo.hosts()
    assert spec.hosts() == [topo.nodeInfo(name)["place"] for name in topo.hosts()]
    assert sorted(spec.layout().switches) == sorted(topo.switches())


def test_a_spec_is_read_where_there_is_no_mininet() -> None:
    code = (
        "import sys; sys.modules['mininet'] = None\n"
        "from experiments.spec.check import find_spec, check\n"
        "path = find_spec('demo')\n"
        "assert check(path.read_text(), str(path), ['ecmp', 'rps', 'caps']) == []\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
