"""What a lone packet costs a switch on this machine: processor time of a real Open vSwitch, measured in two seconds."""

from __future__ import annotations

import itertools
import socket
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from topologies.awake import cores_awake
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.ovs import OvsSwitch
from topologies.processes import cpu_s
from topologies.registry import LabError

PARTS: Final = 5
"""The measurement's; the median counts of those in which every packet arrived, as other work disturbs some of them."""
PACKETS: Final = 100
"""Of a part."""
GAP_S: Final = 0.0025
"""Every packet comes alone, as on the slow links of a lab."""
# An EtherType for local experiments (IEEE Std 802, 88B5), from h1's port to h2's.
_HEAD: Final = bytes.fromhex("02ca000000fd02ca000000fc88b5")
_PAYLOAD_BYTES: Final = 1400
_ETH_P_ALL: Final = 3


def measure_switch_us(hosts: int = 2, *, plain_allocator: bool = False) -> float:
    """Return microseconds of processor time that a lone packet costs a switch of *hosts* + 1 ports.

    Cores are kept awake meanwhile, as in a lab at work: asleep, the same packet costs up to 1.7 times as much.

    Raises LabError where packets are lost in most parts or the kernel keeps no times, and what a lab's start raises.
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
            frames = itertools.count()
            pass_frames(sender, receiver, itertools.islice(frames, 20))  # the first take another way
            with cores_awake():
                return lone_packet_us(
                    [_part(switch.daemon.pid, sender, receiver, frames) for _ in range(PARTS)]
                )


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the measurement: how many of `PACKETS` arrived, and seconds of processor time that the switch took."""

    arrived: int
    spent_s: float


def lone_packet_us(parts: Sequence[Part]) -> float:
    """Return the median of microseconds a packet, over the parts in which all packets arrived.

    A busy machine may be late with a packet, and then says nothing of its cost. Raises LabError where fewer than half
    of the parts are whole.
    """
    costs_us = [
        part.spent_s / PACKETS * 1e6 for part in parts if part.arrived == PACKETS and part.spent_s > 0
    ]
    if 2 * len(costs_us) < len(parts):
        seen = ", ".join(f"{part.arrived} in {part.spent_s * 1e3:.0f} ms" for part in parts)
        raise LabError(
            f"a switch did not pass {PACKETS} packets in most of {len(parts)} tries (packets, and processor "
            f"time: {seen}): end other programs, and try again"
        )
    return statistics.median(costs_us)


def _part(daemon: int, sender: socket.socket, receiver: socket.socket, frames: Iterator[int]) -> Part:
    before = cpu_s(daemon)
    arrived = pass_frames(sender, receiver, itertools.islice(frames, PACKETS))
    return Part(arrived, cpu_s(daemon) - before)


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


def pass_frames(sender: socket.socket, receiver: socket.socket, numbers: Iterable[int]) -> int:
    """Send a frame of each number, one by one, and return how many arrived. A frame that is late is a lost one."""
    arrived = 0
    for number in numbers:
        due = time.monotonic() + GAP_S
        frame = _HEAD + number.to_bytes(_PAYLOAD_BYTES, "big")
        sender.send(frame)
        with suppress(TimeoutError):
            while receiver.recv(2048) != frame:
                pass
            arrived += 1
        time.sleep(max(0.0, due - time.monotonic()))
    return arrived
