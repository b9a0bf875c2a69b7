"""What is no agent's datagram, over whole fabrics of fake tables: plain hosts, ARP, and what is dropped."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given

from controller.fabric.arp import BROADCAST_MAC, REPLY, REQUEST
from controller.openflow.cookies import Rule
from controller.openflow.tables import ETH_ARP, PORT_METERS
from protocol.underlay import BASE_PORT, EV_FIRST, FLOW_KEYS, TrafficClass
from tests.unit.controller.openflow.pipeline_fabrics import AGENT_CLASSES, FAST, shapes
from tests.unit.fabric_shapes import CAPS, Shape, SimHost, datagram, leaf_spine, static_fabric
from tests.unit.fake_tables import Packet, by_hash


def arp_request(asker: SimHost, asked: SimHost, eth_dst: str) -> Packet:
    return Packet(
        eth_dst=eth_dst,
        eth_src=asker.mac,
        eth_type=ETH_ARP,
        ip_proto=0,
        arp_op=REQUEST,
        arp_sha=asker.mac,
        arp_spa=asker.ipv4,
        arp_tpa=asked.ipv4,
    )


@FAST
@given(shapes)
def test_a_leaf_answers_unicast_requests_and_no_others(shape: Shape) -> None:
    fabric = static_fabric(shape, CAPS)
    for asker, asked in itertools.permutations(shape.hosts, 2):
        switch, port = fabric.switches[asker.place.dpid], asker.place.port
        [probe] = switch.outcomes(arp_request(asker, asked, asked.mac), port)
        [(back, reply)] = probe.sent
        assert (back, probe.punted, probe.metered) == (port, (Rule.ARP_ANSWERED,), (PORT_METERS + port,))
        assert (reply.eth_src, reply.eth_dst, reply.arp_op) == (asked.mac, asker.mac, REPLY)
        assert (reply.arp_sha, reply.arp_spa) == (asked.mac, asked.ipv4)
        assert (reply.arp_tha, reply.arp_tpa) == (asker.mac, asker.ipv4)
        for eth_dst in (BROADCAST_MAC, asker.mac):
            [other] = switch.outcomes(arp_request(asker, asked, eth_dst), port)
            assert (other.sent, other.punted) == ((), (Rule.ARP,))
    for dpid in shape.ports.keys() - shape.leaves:
        [above] = fabric.switches[dpid].outcomes(arp_request(*shape.hosts[:2], shape.hosts[1].mac), 1)
        assert (above.sent, above.punted) == ((), (Rule.ARP,))


@pytest.mark.parametrize("kind", [*AGENT_CLASSES, TrafficClass.NONE])
def test_a_host_without_an_agent_gets_its_packets_as_they_were_sent(kind: TrafficClass) -> None:
    shape = leaf_spine(2, 3, 2)
    for source, target in ((shape.hosts[0], shape.hosts[3]), (shape.hosts[0], shape.hosts[1])):
        fabric = static_fabric(shape, CAPS, plain=frozenset((target.name,)))
        packet = datagram(source, target, kind, ev=50000, key=7)
        traces = fabric.traces(packet, source.place)
        assert {trace.packet for trace in traces} == {packet}
        assert {trace.place for trace in traces} == {target.place}


@pytest.mark.parametrize(
    "packet",
    [
        Packet(ip_proto=6, ip_dscp=8),
        Packet(ip_dscp=0, udp_src=40000, udp_dst=BASE_PORT),
        Packet(ip_dscp=46, udp_src=40000, udp_dst=BASE_PORT),
        Packet(ip_dscp=8, udp_src=40000, udp_dst=BASE_PORT - 1),
        Packet(ip_dscp=8, udp_src=40000, udp_dst=BASE_PORT + FLOW_KEYS),
        Packet(ip_proto=1),
    ],
    ids=["tcp", "no class", "foreign DSCP", "port below", "port above", "icmp"],
)
def test_what_is_no_agents_datagram_reaches_an_agents_host_as_it_was_sent(packet: Packet) -> None:
    shape = leaf_spine(2, 3, 1)
    source, target = shape.hosts
    sent = dataclasses.replace(packet, ipv4_src=source.ipv4, ipv4_dst=target.ipv4, eth_dst=target.mac)
    traces = static_fabric(shape, CAPS).traces(sent, source.place)
    assert {trace.packet for trace in traces} == {sent}
    assert {trace.switches[1] for trace in traces} == {0x20001, 0x20002, 0x20003}
    one_way = static_fabric(shape, CAPS).traces(sent, source.place, by_hash)
    assert len(one_way) == 1


@pytest.mark.parametrize(
    "packet",
    [
        Packet(eth_type=0x86DD),
        Packet(eth_type=0x88F7),
        Packet(ipv4_dst="255.255.255.255"),
        Packet(ipv4_dst="224.0.0.251"),
        Packet(ipv4_dst="10.0.9.9"),
    ],
    ids=["IPv6", "PTP", "broadcast", "multicast", "unknown host"],
)
def test_the_rest_is_dropped(packet: Packet) -> None:
    shape = leaf_spine(2, 2, 1)
    traces = static_fabric(shape, CAPS).traces(packet, shape.hosts[0].place)
    assert [trace.place for trace in traces] == [None]


def test_a_datagram_with_a_forged_stamp_does_not_leave_its_leaf() -> None:
    shape = leaf_spine(2, 2, 1)
    source, target = shape.hosts
    fabric = static_fabric(shape, CAPS)
    for port in (1, 4095, EV_FIRST - 1):
        traces = fabric.traces(datagram(source, target, TrafficClass.LONG, ev=port), source.place)
        assert [trace.place for trace in traces] == [None]


def test_a_leaf_does_not_send_up_again_what_came_down_to_it() -> None:
    """Else a moved host's packets would circle between two leaves while only one of them knows."""
    shape = leaf_spine(2, 2, 1)
    source, target = shape.hosts
    fabric = static_fabric(shape, CAPS)
    uplink = next(link for link in shape.links if link.a.dpid == source.place.dpid).a
    traces = fabric.traces(datagram(source, target, TrafficClass.LONG), uplink)
    assert [trace.place for trace in traces] == [None]
