"""What is compiled (native/): of the host agent erasure codes and the moving of packets, of the controller CAPTON;
the simulator.

Erasure codes on GF(256) and GF(2), by number: 1 xor, 2 rlc, 3 ldpc, 4 mds.

Units have k = 1..255 sources and r = 1..255 repairs (mds: k + r <= 256); seeds are unsigned 32-bit numbers. `kernel`
forces one of `kernels()` (default: the fastest); all give the same bytes. The interpreter is released while a call
computes. Whatever cannot be raises ValueError, or OverflowError for numbers that no unit can have, and writes nothing.
"""

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

from numpy import uint8
from numpy.typing import NDArray

from host_agent.inner_packet import InnerPacket

class ContradictionError(ValueError):
    """Received symbols of one unit cannot all be right: no packet of it may be rebuilt."""

def kernels() -> list[str]:
    """Instruction sets that can be used here, slowest first: portable, ssse3, avx2, gfni, or neon."""

def encode_packets(
    code: int, packets: Sequence[bytes], r: int, seed: int, kernel: str | None = None
) -> list[bytes]:
    """The r repairs of a unit of packets (1..65535 B each, of any lengths).

    A packet's symbol is its length in 2 bytes (network byte order), the packet, and zeros up to the unit's longest.
    """

def decode_packets(
    code: int,
    packets: Sequence[bytes | None],
    repairs: dict[int, bytes],
    r: int,
    seed: int,
    kernel: str | None = None,
) -> list[tuple[int, bytes]]:
    """Index and packet of what the received symbols determine, ascending.

    `packets` has None where one has not come; `repairs` are received symbols by index 0..r-1, of one length.

    Raises:
        ContradictionError: equations, a rebuilt length, its zeros or a packet's length do not agree.
    """

def encode(
    code: int, sources: NDArray[uint8], seed: int, out: NDArray[uint8], kernel: str | None = None
) -> None:
    """Write the repairs of sources (k, width) into out (r, width), both contiguous, used where they are."""

def decode(
    code: int,
    sources: NDArray[uint8],
    missing: Sequence[int],
    repairs: NDArray[uint8],
    indices: Sequence[int],
    r: int,
    seed: int,
    out: NDArray[uint8],
    kernel: str | None = None,
) -> list[int]:
    """Rebuild missing rows of sources (k, width) from repairs (len(indices), width), used where they are.

    Returns the sources that are determined, ascending; their symbols are the first rows of out (at least
    len(missing), width). Rows of `missing` are not read.

    Raises:
        ContradictionError: surplus equations do not agree.
    """

def product(
    coefficients: NDArray[uint8], sources: NDArray[uint8], out: NDArray[uint8], kernel: str | None = None
) -> None:
    """Product over GF(256), polynomial 0x11D: out (rows, width) = coefficients (rows, k) x sources (k, width)."""

def ldpc_rows(k: int, r: int, seed: int) -> list[list[int]]:
    """The sources in each of the r rows of the LDPC-staircase parity check matrix, ascending."""

# The moving of datagrams and packets. Nothing here waits, and what the kernel has no room for is told by numbers.

Run = tuple[str, int, int, int, int, int, int, int, int, bytes | None, list[int], list[bytes]]
"""Sound datagrams that continue each other (`host_agent.wire.Run`)."""

CodedRun = tuple[Run, list[tuple[int, int, list[bytes]]]]
"""The same, with repairs among sources (`host_agent.wire.CodedRun`)."""

class DatagramReceiver:
    """Receives at UDP sockets; a datagram longer than *datagram_bytes* is cut off, and so found damaged."""

    def __init__(self, datagram_bytes: int) -> None: ...
    def receive(self, fd: int) -> list[Run | CodedRun | tuple[bytes, str, int, int]]:
        """What waits at a socket: one datagram, or up to 64 where there were more the last time.

        Sound ones (`protocol.datagram`) come as runs; any other as data, source address, source port, TOS.

        Raises:
            OSError: an error is pending at the socket, or it is closed.
        """

class TunReader:
    """Reads from TUN devices with IFF_VNET_HDR. *seen*: the class `host_agent.inner_packet.InnerPacket`."""

    def __init__(self, seen: type[InnerPacket]) -> None: ...
    def read(self, fd: int) -> tuple[bytes, int, InnerPacket | None] | None:
        """Packet, payload of a segment (0: not to be cut), what is seen of it; None where there is nothing to read.

        Only IPv4 without options and fragments is looked at. Anything else comes as it was read, with its virtio_net
        header, and -1. Raises OSError.
        """

class LonePassage:
    """The agent's wait, in which lone packets pass by plans (`host_agent.lone`).

    Made of the device's reader and the underlay's receiver, of which nobody else uses either while it waits; of the
    descriptors of device, raw socket and receiving sockets; of our underlay address (4 B), our session, and the largest
    inner packet, bytes.
    """

    def __init__(
        self,
        reader: TunReader,
        receiver: DatagramReceiver,
        tun: int,
        raw: int,
        sockets: Sequence[int],
        source: bytes,
        session: int,
        mtu: int,
    ) -> None: ...
    def plan(
        self,
        peers: Sequence[tuple[bytes, int, int, int, int]],
        turns: Sequence[Sequence[int]],
        sends: Sequence[
            tuple[
                bytes,
                int,
                int,
                int,
                int,
                int,
                tuple[int, int, int | None, int] | None,
                tuple[int, int, int | None, int] | None,
            ]
        ],
        receives: Sequence[tuple[int, int, bytes, int]],
    ) -> None:
        """What holds from now on, and until the next call (`host_agent.lone.Plans`)."""

    def wait(self, epoll: int, timeout_s: float, grace_s: float) -> list[int]:
        """Descriptors that are ready for reading and whose packets fit no plan.

        Returns after *timeout_s*, or *grace_s* after the first packet that passed, at the latest. What was read already
        is given by the reader and the receiver when they are asked. Raises OSError.
        """

    def tell(
        self,
        left: Callable[[bytes, InnerPacket, tuple[str, int, int, int, bytes], bool, float], None],
        came: Callable[[Run, bytes, bool, float], None],
    ) -> int:
        """Call these for what passed, in order: `host_agent.lone.LonePackets.left` and `came`. How many there were."""

def crc32c_of(data: bytes, value: int) -> int:
    """CRC-32C of what gave *value* (0: nothing) and *data*."""

def encode_datagram(
    kind: int, flags: int, session: int, number: int, sent_us: int, flow: int, position: int, body: bytes
) -> bytes:
    """What `protocol.datagram.encode_fields` does; all numbers must be below 2**32."""

def send_datagrams(fd: int, source: bytes, datagrams: Sequence[tuple[str, int, int, int, bytes]]) -> int:
    """Send over a raw IPv4 socket from address *source* (4 B). Each: address, source port, destination port, TOS, data.

    Returns how many were sent: what finds no room is not.
    """

def send_rows(
    fd: int,
    source: bytes,
    address: str,
    source_ports: Sequence[int],
    destination_port: int,
    tos: int,
    rows: NDArray[uint8],
    last_bytes: int,
    repairs: Sequence[tuple[int, NDArray[uint8]]] = (),
    repair_tos: int = 0,
) -> int:
    """As `send_datagrams`, of rows (datagrams, 28 + length) to one address; the 28 B are written here.

    *repairs*: rows of the same kind that leave behind so many of the others, ascending; ports in the order of leaving.
    """

def seal_rows(
    rows: NDArray[uint8],
    headroom: int,
    last_bytes: int,
    kind: int,
    flags: int,
    session: int,
    number: int,
    sent_us: int,
    flow: int,
    position: int,
) -> None:
    """Write datagrams' headers into rows (datagrams, headroom + 32 + body), behind the headroom.

    Numbers and positions go up by one from row to row; the last body has *last_bytes*.
    """

Piece = bytes | tuple[NDArray[uint8], int, int, int, int]
"""A packet, or packets in rows: those, first row, row behind the last, where packets begin, length of the last one."""

Repairs = tuple[NDArray[uint8], int, int, int, Sequence[Piece]]
"""A unit whose repairs are to be made: rows (r, headroom + 32 + 12 + symbol) for them, number of the code, seed,
position of its first packet, packets (symbols are those of `encode_packets`)."""

def seal_repairs(
    headroom: int, flags: int, session: int, number: int, sent_us: int, flow: int, unit: Repairs
) -> None:
    """Write the repairs of a unit into its rows, as whole datagrams behind the headroom; numbers go up by one.

    What `encode_packets` and `encode_datagram` make of them.
    """

def seal_coded(
    rows: NDArray[uint8],
    headroom: int,
    last_bytes: int,
    flags: int,
    session: int,
    number: int,
    sent_us: int,
    flow: int,
    position: int,
    units: Sequence[tuple[int, Repairs]],
) -> None:
    """`seal_rows` for sources, and `seal_repairs` for each of *units* behind so many rows: numbers go through all."""

def cut_segments(
    packet: bytes, transport: int, head: int, size: int, headroom: int, rows: NDArray[uint8]
) -> int:
    """Cut a TCP packet into rows (segments, headroom + head + size); the length of the last segment.

    *transport*: offset of the TCP header; *head*: bytes of all headers (`host_agent.segments`).
    """

def coalesce_packets(packets: Sequence[bytes], other: Callable[[bytes], bytes]) -> list[bytes]:
    """Writes for a TUN device with IFF_VNET_HDR: consecutive TCP segments of a flow become one super-packet.

    *packets* are sound; *other* makes the write of one that is neither IPv4 without options nor TCP over IPv6.
    """

def write_packets(fd: int, packets: Sequence[bytes], other: Callable[[bytes], bytes]) -> int:
    """Write what `coalesce_packets` would give. Returns how many writes the kernel refused."""

# Feedback (`protocol.datagram.Feedback`). Numbers are those of datagrams to or from one peer, modulo 2**32.

class Feedback:
    """What a peer says of our datagrams; *body*: of a FEEDBACK datagram. ValueError: it is none."""

    def __init__(self, body: bytes) -> None: ...
    @property
    def numbers(self) -> list[int]:
        """Of each receipt; in `stamps` its path's stamp (0: none), in `delays_us` its delay."""
    @property
    def stamps(self) -> list[int]: ...
    @property
    def delays_us(self) -> list[int]: ...
    @property
    def lost(self) -> list[tuple[int, int]]:
        """First numbers and counts of what the peer has given up."""
    @property
    def recovered(self) -> int:
        """Packets rebuilt from repairs."""

class SentLog:
    """Entropy values of the last RING datagrams to one peer, and the paths that they turned out to take."""

    RING: Final[int]
    def sent(self, number: int, entropy: int) -> None:
        """Datagram *number* leaves with this EV (1..65535)."""
    def sent_many(self, number: int, entropies: Sequence[int]) -> None:
        """Datagrams from *number* on leave with these EVs."""
    def entropy_of(self, number: int) -> int | None:
        """EV of a datagram; None if it is forgotten or was never sent."""
    def arrived(self, number: int, stamp: int) -> bool:
        """The peer got *number* over path *stamp*. False: it is not known to have been sent."""
    def told(self, feedback: Feedback) -> list[tuple[int, int]]:
        """`arrived` for each receipt. Returns stamps and delays in us of those that were sent and have a stamp."""
    def stamp_of(self, entropy: int) -> int | None:
        """Path that packets with this EV took when last heard of; None: not heard of yet."""

class Outstanding:
    """Datagrams to one peer that it has not reported, so that blocked paths are noticed before they deliver.

    Receipts alone speak only of paths that delivered: towards a new peer, all of the first ones come over free paths.
    Numbers must be given in the order in which they leave, and times (seconds) must not run backwards; the last
    `SentLog.RING` numbers count.
    """

    def sent(self, number: int, now: float) -> None:
        """Datagram *number*, which the peer will report, leaves now."""
    def sent_many(self, number: int, count: int, now: float) -> None:
        """Datagrams from *number* on leave now, RING at most (ValueError)."""
    def arrived_many(self, numbers: Sequence[int]) -> tuple[int, float | None]:
        """The peer reports *numbers*.

        Returns how many of them were waited for (neither reported nor overdue before), and when the last of those
        left.
        """
    def told(self, feedback: Feedback) -> tuple[int, float | None]:
        """`arrived_many` for all receipts."""
    def overdue(self, sent_before: float) -> int:
        """How many left before that time and were not reported; each is counted once."""

class Receipts:
    """Datagrams of one peer that arrived, to be told of in one feedback. Stamps are source ports in a range."""

    def __init__(self, first_stamp: int, last_stamp: int) -> None: ...
    def __len__(self) -> int: ...
    def add(self, number: int, stamp: int, delay_us: int) -> bool:
        """A datagram came over path *stamp* (0: none). False: it is not taken in, those that wait must be told first.

        One feedback tells of 128 datagrams, with numbers 32000 around the first one.
        """
    def add_run(self, first: int, source_ports: Sequence[int], delay_us: int) -> bool:
        """As `add`, of datagrams with consecutive numbers from *first* on and one delay: of all or of none."""
    def take(self, lost: Sequence[tuple[int, int]], recovered: int) -> bytes:
        """Body of a FEEDBACK that tells of all that wait, of *lost* (first numbers and counts, 32 at most: ValueError)
        and of how many packets were rebuilt; then none wait."""

def stamps_of(source_ports: Sequence[int], first_stamp: int, last_stamp: int) -> list[tuple[int, int]]:
    """Stamps (0: none) of the paths of datagrams, and how many have each, in the order in which they come first."""

class KeptPackets:
    """The packets of one receiving flow that are remembered, by position, modulo 2**32.

    Those kept are *floor* .. *floor* + RING - 1; others can be asked for, and are not there.
    """

    RING: Final[int]
    def __init__(self, floor: int) -> None: ...
    @property
    def floor(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Of all packets that are kept."""
    def __contains__(self, position: int) -> bool: ...
    def put(self, position: int, packet: builtins.bytes) -> None:
        """Keep a packet. Raises ValueError if its position cannot be kept."""
    def put_run(self, position: int, packets: Sequence[builtins.bytes]) -> None:
        """Keep packets at consecutive positions. Raises ValueError as `put` does, and keeps none then."""
    def count(self, position: int, count: int) -> int:
        """How many of *count* positions from *position* on are there."""
    def packets(self, position: int, count: int) -> list[builtins.bytes | None]:
        """The packets of *count* positions from *position* on, None where there is none."""
    def raise_floor(self, steps: int) -> None:
        """Forget so many positions from the floor on."""

# CAPTON (controller/capton/scheduler.py): times in ns, rates in bit/s, sizes in bytes.

class CaptonPlain:
    """The pseudocode as it stands: at each event all flows are sorted and granted anew. For comparison."""

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        capacities: Sequence[int],
        least_share_ppm: int,
        ageing: int,
        finish_timeout_ns: int,
    ) -> None:
        """*groups*: by host its leaf and pod; *capacities*: up and down of each host, then leaf, then pod.

        Raises:
            ValueError: numbers that do not fit each other.
        """

    def request(
        self, flow: int, source: int, destination: int, size: int, now_ns: int
    ) -> list[tuple[int, int]]:
        """Flows whose rate changes, with it. Raises ValueError for ends that cannot be."""
    def finished(self, flow: int, now_ns: int) -> list[tuple[int, int]]: ...
    def expire(self, now_ns: int) -> list[tuple[int, int]]: ...
    def capacity(self, link: int, rate: int, now_ns: int) -> list[tuple[int, int]]: ...
    def next_event(self) -> int | None: ...
    def __len__(self) -> int: ...

class CaptonScheduler(CaptonPlain):
    """The same decisions, repaired at each event instead of made anew. (A class of its own, not derived.)"""

    def standing(self, now_ns: int) -> list[tuple[int, int, int, int, int]]:
        """Flow, source, destination, bytes left and rate, in order."""
    def usage(self) -> list[tuple[int, int]]:
        """Capacity and what is granted of it, by link."""
    def __contains__(self, flow: int) -> bool: ...

# The simulator (native/simulator; simulation/ is the door): times in ps, rates in bit/s, sizes in bytes.

class SimulatedFlows(TypedDict):
    """A list an entry, by flow in the order in which they were given. None: it did not come to that."""

    completed_ps: list[int | None]
    delivered_ps: list[int | None]
    sent: list[int]
    resent: list[int]
    dropped: list[int]
    timeouts: list[int]
    early: list[int]

class SimulatedLink(TypedDict):
    """A link in one direction; bps is 0 where it is down. Queues do not count the packet on the wire."""

    tier: str
    bps: int
    delay_ps: int
    offered: int
    delivered: int
    delivered_bytes: int
    dropped: int
    marked: int
    longest_queue_packets: int
    longest_queue_bytes: int

class Simulation:
    """A run that goes on in steps. Settings and transports: `simulation.settings`."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        transport: Mapping[str, Any],
        starts_ps: Sequence[int],
        sources: Sequence[int],
        destinations: Sequence[int],
        sizes: Sequence[int],
        levels: Sequence[int] | None = None,
    ) -> None:
        """Raises ValueError for settings or flows that cannot be, or that would carry nothing."""
    def run(self, most_events: int) -> bool:
        """Simulate so many events, the interpreter released; return True if the run is over and its books agree.

        Raises:
            ValueError: flows never end, or packets are not accounted for.
        """
    def finished(self) -> int: ...
    def now_ps(self) -> int: ...
    def flows(self) -> SimulatedFlows: ...
    def totals(self) -> dict[str, int]: ...
    def links(self) -> list[SimulatedLink]: ...

def simulated_route(fabric: Mapping[str, Any], source: int, destination: int, path: int) -> list[int]:
    """Return the numbers of the links on a path between hosts. Raises ValueError if there is no such path."""
