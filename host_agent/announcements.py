"""Applications may announce to the agent of their host how much a flow will send, so that its class is known from its
first packet (schemes with ``prior_knowledge: true``; all others ignore it).

An announcement is one JSON object in one datagram, to the Unix socket of abstract name `NAME` (which every network
namespace has for itself), best sent after ``bind()`` and before ``connect()``::

    {"protocol": "tcp", "source": "10.128.1.1", "source_port": 20000,
     "destination": "10.128.2.1", "destination_port": 7000, "bytes": 2500000}

``bytes`` is what will be sent from source to destination; null: it has no end. Nothing is answered.
"""

from __future__ import annotations

import ipaddress
import json
import math
import socket
from dataclasses import dataclass
from typing import Final, Literal

from capstan_client.errors import CapstanError
from host_agent.inner_packet import TCP, UDP
from plain.reading import PlainError, build

NAME: Final = "\0capstan-announcements"
MAX_BYTES: Final = 1024
MOST_AT_ONCE: Final = 512
"""As many as the kernel lets wait (net.unix.max_dgram_qlen: 10, under systemd 512): who announces without end is not to
hold up packets."""
_PROTOCOLS: Final = {"tcp": TCP, "udp": UDP}


class AnnouncementError(CapstanError, ValueError):
    """A datagram that is no announcement; the text says why."""


@dataclass(frozen=True, slots=True)
class _Announcement:
    protocol: Literal["tcp", "udp"]
    source: str
    source_port: int
    destination: str
    destination_port: int
    bytes: int | None


def read_announcement(data: bytes) -> tuple[bytes, float]:
    """Return the flow (as `InnerPacket.flow` has it) and its bytes, `math.inf` where it has no end.

    Raises:
        AnnouncementError: it is not one.
    """
    try:
        announcement = build(_Announcement, json.loads(data), "announcement")
        source, destination = _packed(announcement.source), _packed(announcement.destination)
        size = math.inf if announcement.bytes is None else float(announcement.bytes)
    except (PlainError, ValueError, OverflowError, RecursionError) as error:
        raise AnnouncementError(str(error)) from None
    ports = (announcement.source_port, announcement.destination_port)
    if len(source) != len(destination):
        raise AnnouncementError(
            f"{announcement.source} and {announcement.destination} are not of one IP version"
        )
    if not all(0 < port < 65536 for port in ports):
        raise AnnouncementError(f"ports {ports[0]} and {ports[1]} must be 1..65535")
    if size < 0:
        raise AnnouncementError(f"bytes: {announcement.bytes} must not be negative")
    key = bytes((_PROTOCOLS[announcement.protocol],)) + source + destination
    key += b"".join(port.to_bytes(2, "big") for port in ports)
    return key, size


def _packed(address: str) -> bytes:
    """Return the bytes of an address; of an IPv4 address as an IPv6 socket names it, four. Raises ValueError."""
    known = ipaddress.ip_address(address)
    mapped = known.ipv4_mapped if isinstance(known, ipaddress.IPv6Address) else None
    return (mapped or known).packed


class Announcements:
    """The agent's socket. Raises OSError if another agent of this network namespace has it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind(NAME)
        except OSError:
            self._socket.close()
            raise
        self.malformed = 0

    @property
    def fd(self) -> int:
        """Return the descriptor that is readable when something was announced."""
        return self._socket.fileno()

    def read(self) -> list[tuple[bytes, float]]:
        """Return the announcements that have come, of at most `MOST_AT_ONCE` datagrams; what is none is counted."""
        announced: list[tuple[bytes, float]] = []
        for _ in range(MOST_AT_ONCE):
            try:
                data = self._socket.recv(MAX_BYTES)
            except BlockingIOError:
                break
            try:
                announced.append(read_announcement(data))
            except AnnouncementError:
                self.malformed += 1
        return announced

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
