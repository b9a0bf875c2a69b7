"""Rules of IP tunnels (native/datapath/src/tunnel.rs). Raise ValueError for what has no IP header."""

def ecn_of(packet: bytes) -> int:
    """ECN field of an IPv4 or IPv6 packet."""

def decapsulate_ecn(packet: bytes, outer: int) -> bytes | None:
    """The inner packet with the ECN field of RFC 6040, figure 4; None: it must be dropped.

    A congestion mark on the outer header of a packet that cannot carry one is a loss.
    """

def dont_fragment(packet: bytes) -> bool:
    """Whether only the sender may fragment it: IPv6, or IPv4 with DF."""

def too_big(packet: bytes, mtu: int) -> bytes | None:
    """The ICMP error that gives the sender of *packet* the tunnel's MTU; None where none may be sent.

    ICMPv4: destination unreachable, fragmentation needed (RFC 1191). ICMPv6: packet too big (RFC 4443, 3.2).
    """

def unreachable(packet: bytes) -> bytes | None:
    """The ICMP error for an overlay address that no host has; None where none may be sent."""

def fragment(packet: bytes, mtu: int) -> list[bytes]:
    """An IPv4 packet without DF in pieces of at most *mtu* bytes (RFC 791); options go with every piece."""
