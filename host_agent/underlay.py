"""The agent's sockets on the fabric: datagrams with any source port and DSCP out, datagrams in."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from host_agent.tunnel import OUTER_TTL
from host_agent.wire import Arrived, Outgoing
from protocol.underlay import BASE_PORT, FLOW_KEYS

_HEADERS: Final = struct.Struct("!BBHHHBBH4s4sHHHH")
_DONT_FRAGMENT: Final = 0x4000
_BUFFER_BYTES: Final = 8 << 20
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_DATAGRAM_BYTES: Final = 65535


class UnderlayError(OSError):
    """The sockets cannot be made; the text says why."""


class Underlay:
    """Sends through one raw socket, receives on every port of the flow keys.

    The delivering leaf writes BASE_PORT into what comes over a fabric of ours; on a direct link the flow key stays.
    """

    def __init__(self, underlay_ip: str) -> None:
        self._source = socket.inet_aton(underlay_ip)
        self.sockets: dict[int, socket.socket] = {}
        try:
            self._raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self._raw.setblocking(False)
            self._raw.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES)
            self._raw.bind((underlay_ip, 0))
            for port in range(BASE_PORT, BASE_PORT + FLOW_KEYS):
                one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                one.setblocking(False)
                one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
                one.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
                one.bind((underlay_ip, port))
                self.sockets[one.fileno()] = one
        except OSError as error:
            self.close()
            raise UnderlayError(
                f"cannot open the underlay's sockets on {underlay_ip} (UDP {BASE_PORT}-{BASE_PORT + FLOW_KEYS - 1}): "
                f"{error.strerror}; it needs CAP_NET_RAW, that address on an interface, and no other agent there"
            ) from None
        self.unsent = 0
        """Datagrams that found no room in the socket, or no route."""

    def send(self, datagrams: list[Outgoing]) -> None:
        """Send all; what finds no room is lost and counted, as at any queue."""
        pack, sendto, source = _HEADERS.pack, self._raw.sendto, self._source
        for underlay_ip, source_port, destination_port, tos, data in datagrams:
            length = 8 + len(data)
            head = pack(
                0x45,
                tos,
                20 + length,
                0,
                _DONT_FRAGMENT,
                OUTER_TTL,
                socket.IPPROTO_UDP,
                0,
                source,
                socket.inet_aton(underlay_ip),
                source_port,
                destination_port,
                length,
                0,
            )
            try:
                sendto(head + data, (underlay_ip, 0))
            except OSError:
                self.unsent += 1

    def receive(self, fd: int, limit: int) -> Iterator[Arrived]:
        """Up to *limit* datagrams that wait at one of `sockets`."""
        recvmsg = self.sockets[fd].recvmsg
        for _ in range(limit):
            try:
                data, ancillary, _, address = recvmsg(_DATAGRAM_BYTES, 32)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error about something that we sent
            tos = ancillary[0][2][0] if ancillary and ancillary[0][2] else 0
            yield Arrived(data, address[0], address[1], tos)

    def close(self) -> None:
        """Close all sockets."""
        for one in (getattr(self, "_raw", None), *self.sockets.values()):
            if one is not None:
                one.close()


def mac_of(interface: str) -> str:
    """Hardware address of an interface. Raises UnderlayError."""
    try:
        return Path(f"/sys/class/net/{interface}/address").read_text().strip()
    except OSError:
        pass
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as probe:
        try:
            probe.bind((interface, 0))
        except OSError as error:
            raise UnderlayError(f"no interface {interface!r} here: {error.strerror}") from None
        return ":".join(f"{byte:02x}" for byte in probe.getsockname()[4])


def announce(interface: str, underlay_ip: str) -> None:
    """Send a gratuitous ARP, by which the controller learns at which port this host is."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((interface, 0))
        mac, address = out.getsockname()[4], socket.inet_aton(underlay_ip)
        arp = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, address, bytes(6), address)
        out.send(b"\xff" * 6 + mac + struct.pack("!H", 0x0806) + arp)
