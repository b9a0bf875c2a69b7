"""Super-packets by the agent's own calls: joined as it writes them to its device, cut as it sends them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from ipaddress import ip_address

import capstan_native
import numpy as np

from host_agent import offload
from host_agent.core import AgentCore
from host_agent.inner_packet import addresses, look
from protocol.control import Peer
from protocol.datagram import HEADER_BYTES

_MTU = 65_000
VNET = struct.Struct("=BBHHHH")
"""The header before each packet that is read from a device or written to it (virtio_net_hdr)."""


def header_and_packet(write: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return header and packet of one write to the device."""
    return VNET.unpack(write[: VNET.size]), write[VNET.size :]


def joined(packets: Sequence[bytes]) -> list[bytes]:
    """Return the writes by which an agent gives sound packets to its device."""
    device, kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with device, kernel:
        device.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        kernel.setblocking(False)
        assert capstan_native.write_packets(device.fileno(), packets) == 0
        writes = []
        while True:
            try:
                writes.append(kernel.recv(1 << 17))
            except BlockingIOError:
                return writes


def segments_of(packet: bytes, size: int) -> list[bytes]:
    """Return the segments of *size* bytes of payload that an agent sends of a TCP packet."""
    source, destination = (str(ip_address(address)) for address in addresses(look(packet).flow))
    agent = AgentCore("h1", 1, _MTU, np.random.default_rng(1))
    agent.set_directory([Peer("h1", "10.0.1.1", [source], 1), Peer("h2", "10.0.1.2", [destination], 2)], 0.0)
    agent.super_packet_from_host(packet, size, 0.0)
    return [datagram.data[HEADER_BYTES:] for datagram in agent.datagrams_to_send()]


def packets_in(data: bytes) -> list[bytes]:
    """Return the packets in one read of the device: one, or the segments of a super-packet. Raises PacketError."""
    packet, size = offload.read(data)
    if not size or look(packet).payload <= size:
        look(packet)
        return [packet]
    return segments_of(packet, size)
