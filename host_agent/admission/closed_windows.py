"""Connections whose peer's receive window is closed, and the segment upon which the peer states that window again.

Admission holds a flow by closing the window that its host sees (`native/agent/src/admission/window.rs`). If the agent
dies, its successor knows nothing of such a flow, and the host is silent until it probes the window: after as long as it
has waited already, up to 120 s in Linux. A segment outside of the peer's receive window changes nothing there, and is
answered with an acknowledgement of the true window (RFC 9293, 3.10.7.4).
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from capstan_native import complete_checksum

from host_agent.checksum import checksum
from host_agent.inner_packet import ACK, TCP, addresses

_TABLES: Final = (Path("/proc/thread-self/net/tcp"), Path("/proc/thread-self/net/tcp6"))
_PROBING: Final = "04"
"""What the column ``tr`` says while the zero-window timer runs (Linux, proc_net_tcp.rst)."""
_LOCAL, _REMOTE, _TIMER = 1, 2, 5
_TTL: Final = 64
_IPV4: Final = struct.Struct("!BBHHHBBH4s4s")
_IPV6: Final = struct.Struct("!IHBB16s16s")
_SEGMENT: Final = struct.Struct("!4sIIBBHHH")


def closed_windows(sources: Iterable[str]) -> list[bytes]:
    """Return the flows (`InnerPacket.flow`) of this network namespace from *sources* whose peer's window is closed.

    None are returned if the kernel does not list connections.
    """
    own = {ipaddress.ip_address(source).packed for source in sources}
    flows: list[bytes] = []
    for table in _TABLES:
        with contextlib.suppress(OSError):
            flows += probing(table.read_text(encoding="ascii"))
    return [flow for flow in flows if addresses(flow)[0] in own]


def probing(table: str) -> list[bytes]:
    """Return the flows of /proc/net/tcp or /proc/net/tcp6 whose zero-window timer runs."""
    flows = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[_TIMER].partition(":")[0] == _PROBING:
            source, source_port = _endpoint(fields[_LOCAL])
            destination, destination_port = _endpoint(fields[_REMOTE])
            flows.append(bytes([TCP]) + source + destination + source_port + destination_port)
    return flows


def segment_outside_window(flow: bytes, sequence: int) -> bytes:
    """Return an IP packet of *flow*: an acknowledgement without payload or options.

    sequence: outside of the peer's window for all but some 2^-10 of connections; half of 2^32 away is so for those.
    """
    source, destination = addresses(flow)
    segment = _SEGMENT.pack(flow[-4:], sequence, 0, 5 << 4, ACK, 0, 0, 0)
    if len(source) == 4:
        size = _IPV4.size + len(segment)
        fields = (4 << 4 | 5, 0, size, 0, 0, _TTL, TCP)
        head = _IPV4.pack(*fields, checksum(_IPV4.pack(*fields, 0, source, destination)), source, destination)
    else:
        head = _IPV6.pack(6 << 28, len(segment), TCP, _TTL, source, destination)
    return complete_checksum(head + segment)


def _endpoint(field: str) -> tuple[bytes, bytes]:
    """Return address and port in network order; an IPv4 address that an IPv6 socket has is 4 bytes long."""
    words, _, port = field.partition(":")
    address = b"".join(
        socket.htonl(int(words[at : at + 8], 16)).to_bytes(4, "big") for at in range(0, len(words), 8)
    )
    if len(address) == 16 and (mapped := ipaddress.IPv6Address(address).ipv4_mapped) is not None:
        address = mapped.packed
    return address, bytes.fromhex(port)
