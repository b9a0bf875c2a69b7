"""Loads of links from counters, and their names: against what simulated switches were made to count."""

from __future__ import annotations

import struct
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_5 as ofp
from os_ken.ofproto import ofproto_v1_5_parser as parser

from controller.fabric.events import LinkDown
from controller.fabric.graph import PortRef
from controller.live import link_sampling
from controller.live.event_log import Logged
from controller.live.link_loads import QUEUES_S, LinkLoads, PortCount, QueueLoad, port_counts
from controller.live.link_sampling import LinkSampler
from controller.live.queue_history import FullestQueue, QueueHistory
from controller.live.sampling import Sample
from controller.live.topics import event_object
from controller.openflow import codec
from controller.openflow.session_events import PortsCounted
from controller.plane.naming import FabricNames
from controller.plane.snapshot import FabricSnapshot, HostInfo, LinkInfo, SwitchInfo
from ovsdb.port_queues import QueueCounters
from tests.unit.fabric_shapes import CAPS, leaf_spine
from tests.unit.simulated_fabric import Simulation
from tests.unit.switch_messages import port, ready_session
from tests.waiting import eventually


def snapshot() -> FabricSnapshot:
    """Build leaves 1 and 2 under spine 9, two links from leaf 1; a host at port 7 of leaf 1."""
    return FabricSnapshot(
        switches=(
            SwitchInfo(1, "l1", True, 0, 1), SwitchInfo(2, "l2", True, 0, 2), SwitchInfo(9, "a9", True, 1, 9),
        ),
        links=(
            LinkInfo(PortRef(1, 1), PortRef(9, 1), True, 10_000),
            LinkInfo(PortRef(1, 2), PortRef(9, 2), True, 10_000),
            LinkInfo(PortRef(2, 1), PortRef(9, 3), False, 0),
        ),
        hosts=(HostInfo("h1", "10.0.1.1", "02:00:00:00:00:01", True, PortRef(1, 7)),),
        modes=(), scheme="ecmp", settled=True,
    )  # fmt: skip


def counts(**ports: tuple[float, int, int]) -> dict[int, PortCount]:
    """Return counts by port, from (clock, bytes received, bytes sent); packets of 1000 B."""
    return {
        int(name[1:]): PortCount(at, received // 1000, sent // 1000, received, sent)
        for name, (at, received, sent) in ports.items()
    }


def test_links_are_called_by_their_ends_the_lower_tier_first() -> None:
    names = FabricNames(snapshot())
    assert [link.name for link in names.links] == ["l1-a9", "l1-a9:2", "l2-a9", "h1-l1"]
    assert [names.role(dpid) for dpid in (1, 9, 77)] == ["leaf", "spine", None]
    for name in ("l1-a9", "a9-l1"):
        link = names.by_name(name)
        assert link is not None
        assert link.b == PortRef(9, 1)
    assert names.by_name("l1-l2") is None
    assert names.dpid("l2") == 2
    assert names.switch(77) == "0x4d"


def test_a_link_is_found_by_either_end_first_whatever_its_ends_are_called() -> None:
    fabric = snapshot()
    hyphens = {1: "leaf-1", 2: "leaf-2", 9: "spine-east-1"}
    names = FabricNames(
        replace(fabric, switches=tuple(replace(one, name=hyphens[one.dpid]) for one in fabric.switches))
    )
    for name, turned in (
        ("leaf-1-spine-east-1", "spine-east-1-leaf-1"),
        ("leaf-1-spine-east-1:2", "spine-east-1-leaf-1:2"),
        ("h1-leaf-1", "leaf-1-h1"),
    ):
        link = names.by_name(name)
        assert link is not None
        assert link.name == name
        assert names.by_name(turned) is link


def test_a_link_that_is_no_more_is_called_by_its_switches_and_not_as_what_is_there_now() -> None:
    names = FabricNames(snapshot())
    assert names.between(PortRef(1, 2), PortRef(9, 2)) == "l1-a9:2"
    assert names.between(PortRef(9, 2), PortRef(1, 2)) == "l1-a9:2"
    assert names.between(PortRef(1, 1), PortRef(2, 5)) == "l1-l2"
    assert names.between(PortRef(77, 1), PortRef(9, 1)) == "a9-0x4d"
    rewired = Logged(1, 0.0, LinkDown(0.0, PortRef(1, 1), PortRef(2, 5), "rewired"))
    assert event_object(rewired, names)["link"] == "l1-l2"


def test_switches_whose_bridges_have_one_name_are_called_by_their_dpids() -> None:
    fabric = snapshot()
    alike = replace(fabric, switches=tuple(replace(switch, name="br0") for switch in fabric.switches[:2]))
    names = FabricNames(alike)
    assert [link.name for link in names.links] == ["0x1-0x9", "0x1-0x9:2", "0x2-0x9", "h1-0x1"]
    assert [names.dpid(name) for name in ("br0", "0x1", "0x2")] == [None, 1, 2]


def test_a_fat_tree_has_its_three_roles() -> None:
    tiers = {1: 0, 5: 1, 9: 2}
    fabric = FabricSnapshot(
        tuple(SwitchInfo(dpid, f"n{dpid}", True, tier, dpid) for dpid, tier in tiers.items()),
        (),
        (),
        (),
        "",
        True,
    )
    assert [FabricNames(fabric).role(dpid) for dpid in tiers] == ["leaf", "aggregation", "core"]


def test_loads_are_differences_by_the_switchs_own_clock() -> None:
    names, loads = FabricNames(snapshot()), LinkLoads()
    loads.put(1, counts(p1=(10.0, 1_000, 50_000), p7=(10.0, 0, 0)))
    loads.put(9, counts(p1=(500.0, 50_000, 1_000)))
    assert all(load.ab is None and load.ba is None for load in loads.loads(names, {}))
    loads.put(1, counts(p1=(10.5, 1_000, 300_000), p7=(10.5, 125_000, 62_000)))
    loads.put(9, counts(p1=(500.25, 300_000, 3_000)))
    first, second, third, access = loads.loads(names, {"h1-l1": 4000.0})
    assert first.ab is not None
    assert (first.ab.bits_per_s, first.ab.packets_per_s, first.ab.share) == (4e6, 500.0, 0.4)
    assert first.ba is not None
    assert (first.ba.bits_per_s, first.ba.share) == (64_000.0, 0.0064)
    assert (second.ab, second.rate_kbps, third.up, third.rate_kbps) == (None, 10_000, False, None)
    assert access.ab is not None
    assert access.ba is not None
    assert (access.kind, access.ab.bits_per_s, access.ab.share) == ("access", 2e6, 0.5)
    assert access.ba.bits_per_s == 992_000.0
    totals = {(name, way): octets for name, way, octets, _ in loads.counters(names.links)}
    assert totals["l1-a9", "ab"] == 300_000
    assert totals["h1-l1", "ab"] == 125_000


class Counters:
    """Switches that answer with more and more bytes, as long as they are among `answering`."""

    def __init__(self) -> None:
        self.answering = {1, 9}
        self.fabric = snapshot()
        self.samples: list[Sample] = []
        self.sampler = LinkSampler(
            self,
            lambda: FabricNames(self.fabric),
            lambda names: {},
            lambda most_s: {},
            watched=lambda: True,
            publish=self.samples.append,
            every_s=0.01,
        )
        self._asked = 0

    def read_ports(self) -> None:
        self._asked += 1
        for dpid in self.answering:
            ports = (
                struct.pack("!H2xIII6Q", 64, port, self._asked, 0, *[self._asked] * 6) for port in (1, 7)
            )
            self.sampler.counted(dpid, b"".join(ports))

    def loads(self) -> set[str]:
        """Return the names of the links with a load in the newest sample."""
        return (
            {one["name"] for one in self.samples[-1]["links"] if one["ab"] or one["ba"]}
            if self.samples
            else set()
        )


def test_a_switch_that_answers_no_more_has_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its links showed what they had carried when it was lost, for ever."""
    monkeypatch.setattr(link_sampling, "SILENT_S", 0.2)
    switches = Counters()
    switches.sampler.start()
    try:
        eventually(lambda: switches.loads() == {"l1-a9", "h1-l1"}, "loads")
        switches.answering = {9}
        eventually(lambda: switches.loads() == {"l1-a9"}, "what the other end says")
        switches.answering = set()
        eventually(lambda: switches.loads() == set(), "nothing of anyone")
        switches.answering = {1, 9}
        eventually(lambda: switches.loads() == {"l1-a9", "h1-l1"}, "loads anew")
    finally:
        switches.sampler.stop()


def test_what_a_switch_counted_is_kept_as_long_as_it_is_known() -> None:
    """Whatever reaches the OpenFlow port could come as ever new switches, with 4096 ports each."""
    switches = Counters()

    def counted() -> set[str]:
        return {link for link, *_ in switches.sampler.totals()}

    switches.sampler.start()
    try:
        eventually(lambda: counted() == {"l1-a9", "h1-l1"}, "its counters")
        switches.answering = {9}
        switches.fabric = replace(switches.fabric, switches=switches.fabric.switches[1:])
        eventually(lambda: counted() == {"a9-0x1"}, "counters of the other end alone")
    finally:
        switches.sampler.stop()


def test_of_a_switch_only_the_ports_that_it_counted_last_are_kept() -> None:
    names, loads = FabricNames(snapshot()), LinkLoads()
    loads.put(1, counts(p1=(10.0, 0, 100), p7=(10.0, 0, 100)))
    loads.put(1, counts(p7=(11.0, 0, 200)))
    assert {name for name, *_ in loads.counters(names.links)} == {"h1-l1"}
    assert [link.name for link in loads.loads(names, {}) if link.ab or link.ba] == ["h1-l1"]


@pytest.mark.parametrize("later", [(9.0, 0, 100), (10.0, 0, 200), (10.5, 0, 50), (30.0, 0, 200)])
def test_what_began_anew_or_is_too_old_is_no_load(later: tuple[float, int, int]) -> None:
    names, loads = FabricNames(snapshot()), LinkLoads()
    loads.put(1, counts(p1=(10.0, 0, 100)))
    loads.put(1, counts(p1=later))
    assert loads.loads(names, {})[0].ab is None


def loads_with_queues(*readings: tuple[float, tuple[QueueCounters, ...]], now: float) -> LinkLoads:
    """Return loads of l1-a9: 1 Mb/s from l1, whose port's queues were counted at these times."""
    loads = LinkLoads()
    loads.put(1, counts(p1=(10.0, 0, 0)))
    loads.put(1, counts(p1=(11.0, 0, 125_000)))
    for reading in readings:
        loads.put_queues({PortRef(1, 1): reading}, reading[0])
    loads.put_queues({}, now)
    return loads


def test_queues_are_those_of_the_sending_port() -> None:
    first = QueueCounters(0, 0, 5, 100, 10_000), QueueCounters(9, 9000, 7, 50, 5_000)
    second = QueueCounters(2, 2800, 5, 200, 72_500), QueueCounters(64, 90_000, 57, 150, 67_500)
    loads = loads_with_queues((50.0, first), (50.5, second), (50.5, second), now=50.6)
    link = loads.loads(FabricNames(snapshot()), {})[0]
    assert link.ab is not None
    assert link.ab.queues == (QueueLoad(0, 2, 1e6, 0.0), QueueLoad(1, 64, 1e6, 100.0))
    assert (link.ab.queued_packets, link.ab.dropped_per_s) == (66, 100.0)
    history = QueueHistory()
    history.note(1000.0, [link])
    ways = [("l1-a9", "ab"), ("l2-a9", "ba")]
    assert history.fullest(ways, 999.0, 1001.0) == [FullestQueue(1000.0, "l1-a9", "ab", 66, 100.0)]
    assert history.fullest([("l1-a9", "ba")], 999.0, 1001.0) == []
    assert history.fullest(ways, 1000.5, 1001.0) == []


@pytest.mark.parametrize(
    ("later", "now"),
    [
        ((QueueCounters(1, 1, 0, 10, 500),), 50.6),  # made anew
        ((QueueCounters(1, 1, 0, 200, 20_000),) * 2, 50.6),  # another number of them
        ((QueueCounters(1, 1, 0, 200, 20_000),), 50.5 + QUEUES_S + 0.1),  # no sample since
    ],
)
def test_queues_that_began_anew_or_are_silent_are_not_reported(
    later: tuple[QueueCounters, ...], now: float
) -> None:
    loads = loads_with_queues((50.0, (QueueCounters(0, 0, 0, 100, 10_000),)), (50.5, later), now=now)
    link = loads.loads(FabricNames(snapshot()), {})[0]
    assert link.ab is not None
    assert (link.ab.queues, link.ab.queued_packets, link.ab.dropped_per_s) == ((), None, None)


def test_samples_that_are_taken_seldom_have_loads_all_the_same() -> None:
    """Of --link-samples-per-s 0.1 each had none: readings 10 s apart were too far apart, and queues too old."""
    every_s = 10.0
    loads = LinkLoads(every_s)
    for number in range(3):
        now = 50.0 + number * every_s
        loads.put(1, counts(p1=(number * (every_s + 0.2), 0, number * 1_275_000)))
        before = QueueCounters(number, 0, 0, number * 100, number * 1_000_000)
        loads.put_queues({PortRef(1, 1): (now - every_s, (before,))}, now)  # of the sample before it
    link = loads.loads(FabricNames(snapshot()), {})[0]
    assert link.ab is not None
    assert link.ab.bits_per_s == 1e6
    assert link.ab.queues == (QueueLoad(0, 2, 800_000.0, 0.0),)


@given(
    st.lists(
        st.tuples(st.integers(1, 48), *[st.integers(0, 2**63 - 1)] * 4), max_size=20, unique_by=lambda p: p[0]
    )
)
def test_replies_are_read_as_os_ken_writes_them(ports: list[tuple[int, int, int, int, int]]) -> None:
    body = b"".join(
        struct.pack("!H2xIII8Q", 80, port, 7, 250_000_000, rx, tx, rx_bytes, tx_bytes, 0, 0, 0, 0)
        for port, rx, tx, rx_bytes, tx_bytes in ports
    )
    assert port_counts(body, 99.0) == {
        port: PortCount(7.25, rx, tx, rx_bytes, tx_bytes) for port, rx, tx, rx_bytes, tx_bytes in ports
    }
    for offset, wanted in enumerate(ports):
        parsed = parser.OFPPortStats.parser(body, offset * 80)
        assert (parsed.port_no, parsed.rx_packets, parsed.tx_packets) == wanted[:3]
        assert (parsed.rx_bytes, parsed.tx_bytes) == wanted[3:]


def test_a_switch_without_a_clock_is_timed_by_ours_and_nonsense_is_refused() -> None:
    none = struct.pack("!H2xIII8Q", 80, 3, 0xFFFFFFFF, 0xFFFFFFFF, 1, 2, 3, 4, 0, 0, 0, 0)
    assert port_counts(none, 99.0)[3].at == 99.0
    for broken in (none[:40], b"\0\x07" + none[2:]):
        with pytest.raises((ValueError, struct.error)):
            port_counts(broken, 0.0)


def test_counters_are_asked_for_once_at_a_time() -> None:
    session = ready_session(port(3, b"l1-eth3"))
    session.read_ports()
    session.read_ports()
    sent = session.data_to_send()
    request = parser.OFPPortStatsRequest(codec.PROTOCOL, 0, ofp.OFPP_ANY)
    request.set_xid(struct.unpack_from("!I", sent, 4)[0])
    request.serialize()
    assert sent == bytes(request.buf), "one request, as os-ken would write it"
    body = struct.pack("!H2xIII8Q", 80, 3, 1, 0, 1, 2, 3, 4, 0, 0, 0, 0)
    xid = struct.unpack_from("!I", sent, 4)[0]
    reply = (
        struct.pack("!BBHIHH4x", 6, ofp.OFPT_MULTIPART_REPLY, 16 + len(body), xid, ofp.OFPMP_PORT_STATS, 0)
        + body
    )
    assert list(session.receive(reply, 1.0)) == [PortsCounted(body)]
    session.read_ports()
    assert session.data_to_send()


@pytest.mark.parametrize("up", [True, False])
def test_ports_are_taken_down_as_os_ken_would(up: bool) -> None:
    session = ready_session(port(3, b"l1-eth3"))
    session.set_port(3, up)
    sent = session.data_to_send()
    config = 0 if up else ofp.OFPPC_PORT_DOWN
    change = parser.OFPPortMod(codec.PROTOCOL, 3, "02:00:00:00:00:01", config, ofp.OFPPC_PORT_DOWN, [])
    change.set_xid(struct.unpack_from("!I", sent, 4)[0])
    change.serialize()
    assert sent == bytes(change.buf)
    with pytest.raises(KeyError):
        session.set_port(4, up)


def test_names_of_a_simulated_fabric_are_those_of_its_switches() -> None:
    simulation = Simulation(leaf_spine(2, 4, 2), start=time.monotonic())
    simulation.set_scheme(CAPS)
    simulation.start()
    simulation.run(3.0)
    names = FabricNames(simulation.plane.snapshot())
    assert len({link.name for link in names.links}) == len(names.links) == 8 + 4
    assert {names.role(dpid) for dpid in simulation.shape.leaves} == {"leaf"}
    for link in names.links:
        assert link.access == (link.a is None)
        if link.a is not None:
            assert names.role(link.a.dpid) == "leaf"
