"""The moving of datagrams and packets. Nothing here waits, and what the kernel has no room for is counted."""

from collections.abc import Sequence

from host_agent.inner_packet import InnerPacket, PacketError

class DatagramReceiver:
    """Receives at UDP sockets; a datagram longer than *datagram_bytes* is cut off, and so found damaged."""

    def __init__(self, datagram_bytes: int) -> None: ...
    def datagrams(self, fd: int) -> list[tuple[bytes, str, int, int]]:
        """Return what waits at a socket, or the first of it: data, source address, port, TOS. Raises OSError."""

class TunReader:
    """Reads from TUN devices with IFF_VNET_HDR. *seen*: the class `host_agent.inner_packet.InnerPacket`."""

    def __init__(self, seen: type[InnerPacket]) -> None: ...
    def read(self, fd: int) -> tuple[bytes, int, InnerPacket | None] | None:
        """Packet, payload of a segment (0: not to be cut), what is seen of it; None where there is nothing to read.

        Only IPv4 without options and fragments is looked at. Anything else comes as it was read, with its virtio_net
        header, and -1. Raises OSError.
        """

def send_datagrams(fd: int, source: bytes, datagrams: Sequence[tuple[str, int, int, int, bytes]]) -> int:
    """Send over a raw IPv4 socket from address *source* (4 B). Each: address, source port, destination port, TOS, data.

    Returns how many were sent: what finds no room is not.
    """

def complete_checksum(packet: bytes) -> bytes:
    """Return a sound packet with its TCP or UDP checksum computed; others unchanged.

    Packets that a TUN device with IFF_VNET_HDR hands over carry none; needed where the receiver's has no such header.
    """

def write_packets(fd: int, packets: Sequence[bytes]) -> int:
    """Write sound packets to a TUN device with IFF_VNET_HDR. Returns how many writes the kernel refused.

    Consecutive TCP segments of a flow become one super-packet; the order within flows is kept, and what a merger would
    lose is equal in all of its segments.
    """

def look_at(packet: bytes, seen: type[InnerPacket], error: type[PacketError]) -> InnerPacket:
    """Read the headers of an IPv4 or IPv6 packet (`host_agent.inner_packet.look`). Raises *error*(reason, text)."""

def carry_undecided(tun: int, wire: int) -> None:
    """Pass packets on between a TUN device without IFF_VNET_HDR and a connected UDP socket, for ever.

    The least that a tunnel in one thread costs (`benchmarks.naive_tunnel`). Raises OSError where it cannot wait for
    these descriptors.
    """
