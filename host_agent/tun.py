"""The TUN device through which the host's programs reach the overlay."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import ipaddress
import os
import socket
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import capstan_native

from capstan_client.errors import CapstanError
from host_agent import offload
from host_agent.inner_packet import InnerPacket

_TUNSETIFF: Final = 0x400454CA
_TUNSETPERSIST: Final = 0x400454CB
_TUNSETOFFLOAD: Final = 0x400454D0
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
_OFFLOADS: Final = 0x01 | 0x02 | 0x04  # checksum, TSO for IPv4 and IPv6
QUEUE_PACKETS: Final = 64
"""More, and cubic fills it: at 1000 the round-trip time through an agent is 30 to 130 ms."""
_READ_BYTES: Final = 65536


class TunError(CapstanError, OSError):
    """The device cannot be made; the text says what is missing."""


class Tun:
    """A TUN device, open and up. It goes when it is closed.

    Args:
        name: of the interface.
        addresses: overlay addresses with prefix lengths.
        mtu: bytes of the largest inner packet.
        offloads: False: plain reads and writes, a packet at a time.
        congestion_control: for the route to the overlay: a namespace may be refused the sysctl.
        persistent: True: the device, with its addresses and routes, outlives a process that is killed, so that
            connections wait for the next agent, which takes it over.
    """

    def __init__(
        self,
        name: str,
        addresses: Sequence[str],
        mtu: int,
        *,
        offloads: bool = True,
        congestion_control: str | None = None,
        persistent: bool = False,
    ) -> None:
        self._persistent = persistent
        self._addresses = tuple(addresses)
        self._congestion_control = congestion_control
        self._initial_window: int | None = None
        self.taken_over = name in (interface for _, interface in socket.if_nameindex())
        """A device that outlived another agent."""
        self.reader = capstan_native.TunReader(InnerPacket)
        try:
            self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise TunError(
                f"cannot open /dev/net/tun: {error.strerror}; load the module tun, or give the container the device"
            ) from None
        try:
            self.super_packets = offloads and self._attach(name, _IFF_VNET_HDR)
            if not self.super_packets:
                self._attach(name, 0)
            self.name = name
            self._configure(addresses, mtu, congestion_control)
            self._persist(persistent)
        except BaseException:
            os.close(self.fd)
            raise

    def _attach(self, name: str, extra: int) -> bool:
        request = struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI | extra)
        try:
            fcntl.ioctl(self.fd, _TUNSETIFF, request)
            if extra:
                fcntl.ioctl(self.fd, _TUNSETOFFLOAD, _OFFLOADS)
        except OSError as error:
            if extra and error.errno == errno.EINVAL:
                os.close(self.fd)
                self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
                return False
            raise TunError(
                f"cannot make the TUN device {name!r}: {error.strerror}; it needs CAP_NET_ADMIN and a free name"
            ) from None
        return True

    def _persist(self, persistent: bool) -> None:
        """Set whether the device outlives its last descriptor."""
        fcntl.ioctl(self.fd, _TUNSETPERSIST, int(persistent))

    def _configure(self, addresses: Sequence[str], mtu: int, congestion_control: str | None) -> None:
        lines = [f"link set dev {self.name} mtu {mtu} txqueuelen {QUEUE_PACKETS} up"]
        # "replace": a device that was taken over has them already
        lines += [f"addr replace {address} dev {self.name} nodad" for address in addresses if ":" in address]
        lines += [f"addr replace {address} dev {self.name}" for address in addresses if ":" not in address]
        if congestion_control is not None or self._persistent:
            lines += self._routes()
        for setting, value in (("addr_gen_mode", "1"), ("router_solicitations", "0")):
            with contextlib.suppress(OSError):  # no IPv6 here, or /proc/sys read-only: only noise is lost
                Path(f"/proc/sys/net/ipv6/conf/{self.name}/{setting}").write_text(value)
        self._ip(lines)

    def set_initial_window(self, packets: int | None) -> None:
        """Set TCP's first window of connections over the overlay from now on, both ways; None: the kernel's
        own.

        Raises TunError.
        """
        if packets != self._initial_window:
            self._initial_window = packets
            self._ip(self._routes())

    def _routes(self) -> list[str]:
        """Return the overlay's networks, with what connections over them are to do."""
        lines = []
        for interface in map(ipaddress.ip_interface, self._addresses):
            kernel = (
                f"proto kernel scope link src {interface.ip}"
                if interface.version == 4
                else "proto kernel metric 256"
            )
            line = f"route replace {interface.network} dev {self.name} {kernel}"
            if self._congestion_control is not None:
                line += f" congctl {self._congestion_control}"
            if self._initial_window is not None:
                line += f" initcwnd {self._initial_window} initrwnd {self._initial_window}"
            lines.append(line)
        return lines

    def _ip(self, lines: list[str]) -> None:
        done = subprocess.run(
            ["ip", "-batch", "-"], input="\n".join(lines), text=True, capture_output=True, check=False
        )
        if done.returncode != 0:
            raise TunError(f"cannot configure {self.name!r}: {done.stderr.strip()}")

    def read(self) -> tuple[bytes, int, InnerPacket | None] | None:
        """Return a packet that the host sends, its segments' payload, and what its headers say; None: there is none.

        The payload is that of each segment that the packet is to be cut into; 0: it is not cut. Raises PacketError.
        """
        if self.super_packets:
            got = self.reader.read(self.fd)
            if got is None or got[1] >= 0:
                return got
            return (*offload.read(got[0]), None)
        try:
            return os.read(self.fd, _READ_BYTES), 0, None
        except BlockingIOError:
            return None

    def write(self, packets: Sequence[bytes]) -> int:
        """Give sound packets to the host. Returns how many writes the kernel refused."""
        if self.super_packets:
            return capstan_native.write_packets(self.fd, packets)
        refused = 0
        for data in map(capstan_native.complete_checksum, packets):
            try:
                os.write(self.fd, data)
            except OSError:
                refused += 1
        return refused

    def close(self) -> None:
        """Remove the device."""
        if self._persistent:
            self._persist(False)
        os.close(self.fd)
