"""The agent's sockets on the fabric: datagrams with any source port and DSCP out, datagrams in."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
from collections.abc import Sequence
from typing import Final

import capstan_native

from capstan_client.errors import CapstanError
from host_agent.tun import Tun
from host_agent.underlay_datagrams import Arrived, Outgoing
from protocol.underlay import BASE_PORT, FLOW_KEYS

_BUFFER_BYTES: Final = 8 << 20
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_SIOCGIFMTU, _SIOCGIFHWADDR = 0x8921, 0x8927
_IFREQ_BYTES: Final = 40
_NAME_BYTES: Final = 16
"""Of it, with a zero at the end."""
_WITH_ADDRESS: Final = (1, 772)
"""Kinds: Ethernet and loopback."""


class UnderlayError(CapstanError, OSError):
    """The sockets cannot be made; the text says why."""


class Underlay:
    """Sends through one raw socket, receives on every port of the flow keys.

    The delivering leaf writes BASE_PORT into what comes over a fabric of ours; on a direct link the flow key stays.
    """

    def __init__(self, underlay_ip: str, mtu: int = 1500) -> None:
        self._receiver = capstan_native.DatagramReceiver(mtu)
        self._source = socket.inet_aton(underlay_ip)
        self.sockets: dict[int, socket.socket] = {}
        try:
            self._raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self._raw.setblocking(False)
            self._raw.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES)
            self._raw.bind((underlay_ip, 0))
            for port in range(BASE_PORT, BASE_PORT + FLOW_KEYS):
                opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                opened.setblocking(False)
                opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
                opened.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
                opened.bind((underlay_ip, port))
                self.sockets[opened.fileno()] = opened
        except OSError as error:
            self.close()
            raise UnderlayError(
                f"cannot open the underlay's sockets on {underlay_ip} (UDP {BASE_PORT}-{BASE_PORT + FLOW_KEYS - 1}): "
                f"{error.strerror}; it needs CAP_NET_RAW, that address on an interface, and no other agent there"
            ) from None
        self.unsent = 0
        """Datagrams that found no room in the socket, or no route."""

    def send(self, datagrams: Sequence[Outgoing]) -> None:
        """Send all; what finds no room is lost and counted, as at any queue."""
        sent = capstan_native.send_datagrams(self._raw.fileno(), self._source, datagrams)
        self.unsent += len(datagrams) - sent

    def receive(self, fd: int) -> list[Arrived]:
        """Return what waits at one of `sockets`, or the first of it."""
        try:
            return [Arrived(*arrival) for arrival in self._receiver.datagrams(fd)]
        except OSError:
            return []  # an ICMP error about something that we sent

    def carrier(self, tun: Tun, epoll: int) -> capstan_native.Carrier:
        """Return what moves packets between these sockets, the device and the core; *epoll* knows all of
        them.
        """
        device = (tun.reader, tun.fd)
        underlay = (self._receiver, self._raw.fileno(), list(self.sockets))
        return capstan_native.Carrier(device, underlay, self._source, epoll)

    def close(self) -> None:
        """Close all sockets."""
        for opened in (getattr(self, "_raw", None), *self.sockets.values()):
            if opened is not None:
                opened.close()


def mac_of(interface: str) -> str:
    """Return the hardware address of an interface of this network namespace. Raise UnderlayError.

    A socket belongs to the namespace; /sys shows that of the process that mounted it.
    """
    kind, address = struct.unpack_from("=H6s", _asked(interface, _SIOCGIFHWADDR))
    if kind not in _WITH_ADDRESS:
        raise UnderlayError(f"interface {interface!r} has no Ethernet address")
    return ":".join(f"{byte:02x}" for byte in address)


def mtu_of(interface: str) -> int:
    """Return the MTU of an interface of this network namespace, bytes. Raise UnderlayError."""
    mtu: int = struct.unpack_from("=i", _asked(interface, _SIOCGIFMTU))[0]
    return mtu


def _asked(interface: str, question: int) -> bytes:
    """Return what the kernel answers of an interface, behind its name. Raise UnderlayError."""
    name = interface.encode()
    if len(name) >= _NAME_BYTES:  # the kernel would take its begin for the name
        raise UnderlayError(f"no interface {interface!r} here: a name has {_NAME_BYTES - 1} bytes at most")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer: bytes = fcntl.ioctl(probe, question, name.ljust(_IFREQ_BYTES, b"\0"))
        except OSError as error:
            raise UnderlayError(f"no interface {interface!r} here: {error.strerror}") from None
    return answer[_NAME_BYTES:]


def announce(interface: str, underlay_ip: str) -> None:
    """Send a gratuitous ARP, by which the controller learns at which port this host is."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((interface, 0))
        mac, address = out.getsockname()[4], socket.inet_aton(underlay_ip)
        arp = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, address, bytes(6), address)
        out.send(b"\xff" * 6 + mac + struct.pack("!H", 0x0806) + arp)
