"""The agent's sockets on the fabric: datagrams with any source port and DSCP out, datagrams in."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from host_agent.mmsg import ManyReceiver, ManySender
from host_agent.tunnel import OUTER_TTL
from host_agent.wire import OUTER_HEADER_BYTES, Arrived, Burst, Outgoing
from protocol.underlay import BASE_PORT, FLOW_KEYS

_HEADERS: Final = struct.Struct("!BBHHHBBH4s4sHHHH")
_DONT_FRAGMENT: Final = 0x4000
_BUFFER_BYTES: Final = 8 << 20
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_SOURCE_PORT_AT: Final = 20
_MOST_TEXTS: Final = 4096


class UnderlayError(OSError):
    """The sockets cannot be made; the text says why."""


class Underlay:
    """Sends through one raw socket, receives on every port of the flow keys.

    The delivering leaf writes BASE_PORT into what comes over a fabric of ours; on a direct link the flow key stays.
    """

    def __init__(self, underlay_ip: str, mtu: int = 1500) -> None:
        self._datagram_bytes = mtu
        self._receiver = ManyReceiver(mtu)
        self._texts: dict[bytes, str] = {}
        """Addresses as text, by their bytes."""
        self._source = socket.inet_aton(underlay_ip)
        self.sockets: dict[int, socket.socket] = {}
        try:
            self._raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self._raw.setblocking(False)
            self._raw.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES)
            self._raw.bind((underlay_ip, 0))
            self._many = ManySender(self._raw.fileno())
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

    def send(self, datagrams: Iterable[Outgoing | Burst]) -> None:
        """Send all; what finds no room is lost and counted, as at any queue."""
        sendto = self._raw.sendto
        for one in datagrams:
            if isinstance(one, Burst):
                self._send_burst(one)
                continue
            underlay_ip, source_port, destination_port, tos, data = one
            head = self._head(underlay_ip, source_port, destination_port, tos, len(data))
            try:
                sendto(head + data, (underlay_ip, 0))
            except OSError:
                self.unsent += 1

    def _send_burst(self, burst: Burst) -> None:
        rows = burst.rows
        count, width = rows.shape
        head = self._head(burst.underlay_ip, 0, burst.destination_port, burst.tos, width - OUTER_HEADER_BYTES)
        rows[:, :OUTER_HEADER_BYTES] = np.frombuffer(head, np.uint8)
        rows[:, _SOURCE_PORT_AT : _SOURCE_PORT_AT + 2] = (
            burst.source_ports.astype(">u2").view(np.uint8).reshape(count, 2)
        )
        last = OUTER_HEADER_BYTES + burst.last_bytes
        rows[-1, 2:4] = np.frombuffer(last.to_bytes(2, "big"), np.uint8)
        rows[-1, 24:26] = np.frombuffer((last - 20).to_bytes(2, "big"), np.uint8)
        self.unsent += count - self._many.send(socket.inet_aton(burst.underlay_ip), rows, last)

    def _head(
        self, underlay_ip: str, source_port: int, destination_port: int, tos: int, data_bytes: int
    ) -> bytes:
        """IPv4 and UDP headers. The kernel fills in the IPv4 checksum; UDP has none, for the datagram has its CRC."""
        return _HEADERS.pack(
            0x45,
            tos,
            OUTER_HEADER_BYTES + data_bytes,
            0,
            _DONT_FRAGMENT,
            OUTER_TTL,
            socket.IPPROTO_UDP,
            0,
            self._source,
            socket.inet_aton(underlay_ip),
            source_port,
            destination_port,
            8 + data_bytes,
            0,
        )

    def receive(self, fd: int, many: bool) -> list[Arrived]:
        """What waits at one of `sockets`: one datagram, or as *many* as `mmsg.MOST`.

        The first two come by plain calls, which are the cheaper ones while there are no more.
        """
        got: list[Arrived] = []
        recvmsg = self.sockets[fd].recvmsg
        for _ in range(2 if many else 1):
            try:
                data, ancillary, _, address = recvmsg(self._datagram_bytes, 32)
            except BlockingIOError:
                return got
            except OSError:
                continue  # an ICMP error about something that we sent
            tos = ancillary[0][2][0] if ancillary and ancillary[0][2] else 0
            got.append(Arrived(data, address[0], address[1], tos))
        if not many:
            return got
        try:
            rest = self._receiver.receive(fd)
        except OSError:
            return got
        for data, source, source_port, tos in rest:
            underlay_ip = self._texts.get(source)
            if underlay_ip is None:
                underlay_ip = socket.inet_ntoa(source)
                if len(self._texts) < _MOST_TEXTS:
                    self._texts[source] = underlay_ip
            got.append(Arrived(data, underlay_ip, source_port, tos))
        return got

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
