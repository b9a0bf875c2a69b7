"""What a lone packet costs a switch on this machine: processor time of a real Open vSwitch, measured in two seconds."""

from __future__ import annotations

import socket
import statistics
import time
from contextlib import suppress
from functools import partial
from typing import Final

from topologies.awake import cores_awake
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.ovs import OvsSwitch
from topologies.processes import cpu_s
from topologies.registry import LabError

PARTS: Final = 5
"""The measurement's; their median counts, as other work disturbs some of them."""
PACKETS: Final = 100
"""Of a part."""
GAP_S: Final = 0.0025
"""Every packet comes alone, as on the slow links of a lab."""
# An EtherType for local experiments (IEEE Std 802, 88B5), from h1's port to h2's.
_FRAME: Final = bytes.fromhex("02ca000000fd02ca000000fc88b5") + bytes(1400)
_ETH_P_ALL: Final = 3


def measure_switch_us(hosts: int = 2, *, plain_allocator: bool = False) -> float:
    """Return microseconds of processor time that a lone packet costs a switch of *hosts* + 1 ports.

    Cores are kept awake meanwhile, as in a lab at work: asleep, the same packet costs up to 1.7 times as much.

    Raises LabError where packets are lost or the kernel keeps no times, and what a lab's start raises.
    """
    fabric = FabricSpec(leaves=1, spines=1, hosts_per_leaf=hosts)
    with Lab(fabric, plain_allocator=plain_allocator) as lab:
        switch = lab.switch("l1")
        assert switch.daemon is not None
        switch.ofctl("add-flow", f"in_port={_port(switch, 'h1')},actions=output:{_port(switch, 'h2')}")
        with (
            lab.inside("h1", partial(_packet_socket, "h1-eth0")) as sender,
            lab.inside("h2", partial(_packet_socket, "h2-eth0")) as receiver,
        ):
            receiver.settimeout(1.0)
            _pass(sender, receiver, 20)  # the first packets take another way through the switch
            with cores_awake():
                return statistics.median(_part_us(switch.daemon.pid, sender, receiver) for _ in range(PARTS))


def _part_us(daemon: int, sender: socket.socket, receiver: socket.socket) -> float:
    before = cpu_s(daemon)
    arrived = _pass(sender, receiver, PACKETS)
    spent_s = cpu_s(daemon) - before
    if arrived < PACKETS or spent_s <= 0:
        raise LabError(
            f"a switch passed {arrived} of {PACKETS} packets in {spent_s * 1e3:.0f} ms of processor time"
        )
    return spent_s / PACKETS * 1e6


def _port(switch: OvsSwitch, host: str) -> int:
    """Return the number of the port that leads to *host*."""
    for number, interface in switch.intfs.items():
        if interface.link is not None and host in {
            interface.link.intf1.node.name,
            interface.link.intf2.node.name,
        }:
            return int(number)
    raise LabError(f"switch {switch.name} has no port towards {host}")


def _packet_socket(interface: str) -> socket.socket:
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    packets.bind((interface, 0))
    return packets


def _pass(sender: socket.socket, receiver: socket.socket, count: int) -> int:
    """Send *count* frames one by one, and return how many arrived."""
    arrived = 0
    for _ in range(count):
        due = time.monotonic() + GAP_S
        sender.send(_FRAME)
        with suppress(TimeoutError):
            while receiver.recv(2048) != _FRAME:
                pass
            arrived += 1
        time.sleep(max(0.0, due - time.monotonic()))
    return arrived
