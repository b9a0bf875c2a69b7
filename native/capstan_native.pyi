"""What is compiled (native/): of the host agent erasure codes and the moving of packets, of the controller CAPTON;
the simulator.

Erasure codes on GF(256) and GF(2), by number: 1 xor, 2 rlc, 3 ldpc, 4 mds.

Units have k = 1..255 sources and r = 1..255 repairs (mds: k + r <= 256); seeds are unsigned 32-bit numbers. `kernel`
forces one of `kernels()` (default: the fastest); all give the same bytes. The interpreter is released while a call
computes. Whatever cannot be raises ValueError, or OverflowError for numbers that no unit can have, and writes nothing.
"""

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, Literal, Self, TypedDict, TypeVar

from numpy import uint8
from numpy.random import Generator
from numpy.typing import NDArray

from host_agent.inner_packet import InnerPacket
from host_agent.paths.base import Flow, PathPolicy
from protocol.datagram import RepairHead
from protocol.policy import CodeName, CodingPolicy, Weight
from protocol.underlay import TrafficClass

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

def worth_trying(code: int, missing: int, repairs: int) -> bool:
    """Return True if decoding is likely to find anything with so many sources missing and repairs at hand."""

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

class PendingFeedback:
    """What the next feedback to one peer carries."""

    DUE: Final[int]
    """So many receipts make feedback due at once."""
    def __init__(self) -> None: ...
    @property
    def waiting(self) -> int:
        """Receipts beside the feedback that is complete."""
    @property
    def is_empty(self) -> bool: ...
    def receipts(self, first: int, source_ports: Sequence[int], delay_us: int) -> bool:
        """Take in datagrams that arrived with consecutive numbers from *first* on and one delay (receiver's clock less
        sender's, modulo 2**32). Return True if feedback is due."""
    def lost(self, numbers: Sequence[tuple[int, int]]) -> None:
        """Take in first numbers and counts of what was given up."""
    def recovered(self, packets: int) -> None:
        """Take in how many packets were rebuilt from repairs."""
    def take(self) -> list[bytes]:
        """Return bodies of FEEDBACK datagrams with all of it; then nothing waits."""

class LeastDelay:
    """The least delay from a peer to us. Its clock may be another machine's: only differences count."""

    def __init__(self) -> None: ...
    def above(self, delay_us: int) -> int:
        """Take in a delay (microseconds modulo 2**32). Return it as microseconds above the least."""

R = TypeVar("R")

class EarlyRepairs(Generic[R]):
    """Repairs that overtook every source of their flow, by flow number; MAX at most."""

    MAX: Final[int]
    def __init__(self) -> None: ...
    def __contains__(self, flow: int) -> bool: ...
    def __bool__(self) -> bool: ...
    def keep(self, flow: int, repair: R) -> int:
        """Keep a repair until its flow is known. Return how many had to go: those of the flow that waits longest."""
    def take(self, flow: int) -> list[R]:
        """Return the repairs that waited for a flow, in the order in which they came."""

class Arrivals:
    """Numbers of one peer's datagrams as they arrive: which are new, which are replays, which are lost for good.

    One peer and session; times in seconds. A jump of the numbers costs no more than any datagram.
    """

    WINDOW: Final[int]
    """Numbers this far behind the newest are replays, whatever they are."""
    def __init__(self) -> None: ...
    @property
    def newest(self) -> int | None:
        """The newest number that came; None if none did."""
    @property
    def received(self) -> int: ...
    @property
    def replayed(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def late(self) -> int: ...
    def accept(self, number: int, now: float) -> bool:
        """Return True if this number is seen for the first time, False if it is a replay, to be dropped."""
    def accept_run(self, first: int, count: int, now: float) -> bool:
        """Take in *count* consecutive numbers, all new. Return False, and do nothing, if `accept` has to see each."""
    def give_up(self, noticed_before: float) -> list[tuple[int, int]]:
        """Give up what was noticed missing by then. Return first numbers and counts: lost, unless they come late."""
    def oldest_missing(self) -> float | None:
        """Return when the gap that is open for longest was noticed; None if there is none."""

class Release:
    """In-order release of one receiving flow: packets behind a gap wait until it is filled or a timer fires.

    Positions are the flow's packet numbers modulo 2**32; each is released at most once. A timeout of 0 s holds nothing
    back: packets go out as they come, each once. *stamp*: of the path that a packet took, 0 where none is known.
    """

    def __init__(self, first: int) -> None: ...
    @property
    def next(self) -> int:
        """The position that is due."""
    @property
    def deadline(self) -> float | None:
        """When `expire` will give up the gap; None while nothing is held."""
    @property
    def held_total(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def duplicates(self) -> int: ...
    @property
    def abandoned(self) -> int:
        """Positions given up, less those whose packet came late."""
    def arrive(
        self, position: int, packet: bytes, timeout_s: float, now: float, stamp: int = 0
    ) -> list[bytes]:
        """Take in a packet that came or was rebuilt. Return what goes out now, in order."""
    def arrive_run(
        self, position: int, packets: Sequence[bytes], timeout_s: float, now: float
    ) -> list[bytes]:
        """As `arrive`, of packets with consecutive positions from *position* on."""
    def follow(self, position: int, packet: bytes, timeout_s: float, now: float) -> list[bytes]:
        """Take in a packet without position that must not overtake those before *position*: a bare FIN, which TCP would
        take for a sign that those are lost. Return what goes out now."""
    def expire(self, now: float) -> list[bytes]:
        """Give up the gaps before all that has waited for long enough. Return what goes out now, in order."""
    def drain(self) -> list[bytes]:
        """Return all that is held, in order: the flow ends."""

def stamps_of(source_ports: Sequence[int], first_stamp: int, last_stamp: int) -> list[tuple[int, int]]:
    """Stamps (0: none) of the paths of datagrams, and how many have each, in the order in which they come first."""

# Path policies (native/agent/src/paths). Times in seconds; `rng` gives a draw that seeds the policy's own generator.

class FlowRef:
    """What policies know of a flow: its id and 32 bits of its 5-tuple."""

    def __init__(self, id: int, hash: int) -> None: ...
    @property
    def id(self) -> int: ...
    @property
    def hash(self) -> int: ...

class Route:
    """A destination leaf as packets of one traffic class may reach it; one object for the agent's whole life."""

    def __init__(
        self, leaf: str, traffic_class: TrafficClass, labels: tuple[int, ...] | None = None
    ) -> None: ...
    @property
    def leaf(self) -> str: ...
    @property
    def traffic_class(self) -> TrafficClass: ...
    @property
    def labels(self) -> tuple[int, ...]:
        """Source ports that name the live paths (`protocol.underlay`), ascending; a new tuple whenever they change.
        Empty while they are not known, and towards hosts of our own leaf."""
    @labels.setter
    def labels(self, labels: tuple[int, ...]) -> None: ...

class Report:
    """A peer got one of our datagrams."""

    def __init__(
        self, flow: int, leaf: str, entropy: int, stamp: int, delay_s: float, sent: float
    ) -> None: ...
    @property
    def flow(self) -> int: ...
    @property
    def leaf(self) -> str: ...
    @property
    def entropy(self) -> int:
        """Source port that it left with."""
    @property
    def stamp(self) -> int:
        """Path that it took; 0: it crossed no top tier."""
    @property
    def delay_s(self) -> float:
        """Its one-way delay above the least to that peer."""
    @property
    def sent(self) -> float:
        """When it left."""

class Load:
    """What agents of a leaf say to each other of its paths."""

    def __init__(self, short_flows: dict[int, int], delays_s: dict[str, dict[int, float]]) -> None: ...
    @property
    def short_flows(self) -> dict[int, int]:
        """Those that are active, by path stamp."""
    @property
    def delays_s(self) -> dict[str, dict[int, float]]:
        """What packets wait there, above the least, by destination leaf and path stamp; a path that is missing is free,
        or not known."""

class Turn:
    """The source ports of the next packets, in this order, of whichever flows share `owner`."""

    @property
    def owner(self) -> object: ...
    @property
    def ports(self) -> list[int]: ...

class CompiledPathPolicy(PathPolicy):
    """A policy of native/agent. (Registered as a `PathPolicy`, not derived.)"""

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int: ...
    def grant(self, flow: int, stamp: int) -> None:
        """The path of a flow (`FlowRef.id`) from now on; what is no path stamp: none of its own."""

class Spray(CompiledPathPolicy):
    def __init__(self, rng: Generator) -> None: ...

class FlowHash(CompiledPathPolicy): ...
class LabelHash(CompiledPathPolicy): ...

class RoundRobin(CompiledPathPolicy):
    def __init__(self, rng: Generator) -> None: ...

class Granted(CompiledPathPolicy): ...

class Flowcell(CompiledPathPolicy):
    def __init__(self, flowcell_bytes: int = 65536) -> None: ...

class Flowlet(CompiledPathPolicy):
    def __init__(self, rng: Generator, gap_s: float) -> None: ...

class Tr(CompiledPathPolicy):
    def __init__(self, packet_time_s: float) -> None: ...

class Reps(CompiledPathPolicy):
    RING: Final[int]
    def __init__(self, rng: Generator, congested_s: float, explore_packets: int, freeze_s: float) -> None: ...

class Plb(CompiledPathPolicy):
    LEAST_TIMEOUT_S: Final[float]
    def __init__(
        self,
        rng: Generator,
        congested_s: float,
        congested_share: float,
        rounds: int,
        idle_rounds: int,
        suspend_s: float,
    ) -> None: ...

class Departures:
    """When the last datagrams to one peer left, and of which flow and class. In step with `SentLog`."""

    def sent(self, number: int, count: int, flow: int, traffic_class: int, now: float) -> None:
        """*count* datagrams from *number* on leave now. flow: its number on the wire, 0 for none."""

class Steering:
    """The path policies of an agent, and the routes that they choose from."""

    def set_policies(self, policies: Sequence[PathPolicy], serves: Sequence[int]) -> None:
        """Begin anew. *serves*: which of the policies serves each traffic class. ValueError: one that is not there."""
    @property
    def learning(self) -> bool:
        """Whether any policy wants to know what became of its datagrams."""
    def routes(self, leaf: str) -> tuple[Route, ...]:
        """The ways to a leaf, by traffic class."""
    def set_paths(self, paths: Mapping[str, Sequence[int]], by_class: Mapping[str, Sequence[int]]) -> None:
        """Which paths are alive, as in `protocol.control.Paths`. Stamps that cannot be are left out."""
    def learn(
        self,
        leaf: str,
        log: SentLog,
        departures: Departures,
        feedback: Feedback,
        above_least_us: Callable[[int], int],
        now: float,
    ) -> None:
        """A peer's feedback. above_least_us: from such a delay, how much it is above the least."""
    def forget(self, flow: int) -> None:
        """A flow is over."""
    def grant(self, flow: int, stamp: int) -> None:
        """The controller has granted a flow a path (0: none of its own)."""
    def load(self, now: float) -> Load | None:
        """What the other agents of our leaf are to know of us; None: no policy shares anything."""
    def set_load(self, load: Load, now: float) -> None:
        """What the other agents of our leaf have together, from now on."""

def flow_entropy(flow: Flow, turn: int = 0) -> int:
    """The EV that stands for a flow wherever no path can be named; each *turn* has its own."""

def digit_reversed(labels: Sequence[int]) -> list[int]:
    """*labels* in the order of their places' reversed binary digits."""

class FlowPriority:
    """What a flow's next packet needs (native/agent/src/priority.rs)."""

    def __init__(self) -> None: ...
    @property
    def demote_at(self) -> int:
        """Payload at which its priority falls next, in bytes; 2**62: never."""
    @property
    def tos(self) -> tuple[int, int, int, int]:
        """Type-of-service byte without ECN, by traffic class."""

class Priorities:
    """What the flows of one host get, by policy and types."""

    def use_policy(
        self, kind: str, of_class: Sequence[int], thresholds: Sequence[int], predicted: bool
    ) -> None:
        """`protocol.priority.PriorityPolicy`, and the priorities of the classes; there are no types then. ValueError:
        there is no such kind."""
    def use_types(self, features: Sequence[str], of_value: Mapping[bytes, Sequence[int]]) -> None:
        """Thresholds by the bytes of the features, in their order, one behind the other. ValueError: no such
        feature."""
    @property
    def predicted(self) -> bool:
        """Whether the controller wants to know of flows that have ended."""
    @property
    def control_tos(self) -> int:
        """Of what belongs to no flow."""
    def give(self, flow: FlowPriority, key: bytes, payload: int, announced: float | None) -> bool | None:
        """What the flow's next packet needs, at its beginning and when policy, types or size change.

        Returns whether its type is known; None: that was not asked, or it has sent something before.
        """
    def give_for(self, flow: FlowPriority, payload: int) -> None:
        """What its next packet needs when it has sent so much."""

class DecoderCounters:
    """What happened to what came; all count events since the flow began."""

    @property
    def sources(self) -> int: ...
    @property
    def repairs(self) -> int: ...
    @property
    def recovered(self) -> int:
        """Source packets rebuilt."""
    @property
    def duplicate_sources(self) -> int:
        """Sources whose packet was there already, as received or as rebuilt."""
    @property
    def late_sources(self) -> int:
        """Sources older than what is remembered."""
    @property
    def surplus_repairs(self) -> int:
        """Repairs of units that were complete already: what redundancy cost."""
    @property
    def duplicate_repairs(self) -> int: ...
    @property
    def late_repairs(self) -> int:
        """Repairs of units that are forgotten or given up."""
    @property
    def malformed_repairs(self) -> int:
        """Heads or symbols that cannot be."""
    @property
    def inconsistent_repairs(self) -> int:
        """Repairs that say otherwise than their unit's first repair did."""
    @property
    def failed_units(self) -> int:
        """Units given up because their symbols contradict one another."""
    @property
    def expired_units(self) -> int:
        """Units forgotten incomplete: by age, by newer units, or because their sources were forgotten."""

class UnitDecoder:
    """The receiver's side of one flow's coding: sources and repairs go in as they come, rebuilt packets come out.

    A peer may send anything: what cannot be is counted and dropped, never raised. Times are in seconds and must not run
    backwards; positions count modulo 2**32.

    max_bytes: of packets and repairs kept. max_units: units kept that are incomplete. max_age_s: a unit that is
    incomplete after this time is forgotten.
    """

    MAX_K: Final[int]
    WINDOW: Final[int]
    """Sources are remembered over this many positions."""
    def __init__(self, max_bytes: int = ..., max_units: int = 16, max_age_s: float = 2.0) -> None: ...
    @property
    def counters(self) -> DecoderCounters:
        """As they are now."""
    @property
    def kept_bytes(self) -> int:
        """Bytes of packets and repairs that are kept now."""
    @property
    def kept_units(self) -> int:
        """Incomplete units that are kept now."""
    def source(self, position: int, packet: builtins.bytes, now: float) -> list[tuple[int, builtins.bytes]]:
        """Take in a source. Return what it lets rebuild: (position, packet), ascending; never *position* itself."""
    def repair(
        self, position: int, head: RepairHead, symbol: builtins.bytes, now: float
    ) -> list[tuple[int, builtins.bytes]]:
        """Take in a repair of the unit from *position* on. Return what it lets rebuild, as `source` does."""
    def takes_run(self, position: int, count: int, now: float) -> bool:
        """Return True if `source_run` may be used: all are new and not forgotten, and no unit waits for them."""
    def source_run(self, position: int, packets: Sequence[builtins.bytes], now: float) -> None:
        """Take in sources with consecutive positions from *position* on (`takes_run`); nothing is rebuilt."""
    def surplus_run(self, position: int, bodies: Sequence[builtins.bytes], now: float) -> bool:
        """Take in repairs of one unit, as on the wire, that `repair` would only count as surplus.

        Return False, and do nothing, if they are to be given to `repair`.
        """
    def needs_none_of(
        self, position: int, repairs: Sequence[tuple[int, int, Sequence[builtins.bytes]]]
    ) -> bool:
        """Return True if `repair` would only count repairs as surplus that come among sources from *position* on.

        The sources may be taken as a run (`takes_run`). *repairs*: as in `host_agent.wire.CodedRun`.
        """
    def surplus(self, count: int) -> None:
        """Count repairs for which `needs_none_of` is true."""
    def known(self, position: int) -> bool:
        """Return True if the packet of *position* came or was rebuilt (False for what is forgotten)."""
    def pending(self, position: int) -> bool:
        """Return True if the packet of *position* may still be rebuilt: holding packets behind it can pay.

        False if it is known or forgotten, or if all units that cover it were given up. True promises nothing.
        """
    def shortfall(self, position: int) -> int | None:
        """Return how many symbols the unit of *position* still needs; None if no repair of it came."""
    def deadline(self) -> float | None:
        """Return when `expire` has something to do."""
    def expire(self, now: float) -> None:
        """Forget units that are too old. Called by `source` and `repair` as well."""

class AdmissionRequests:
    """Which flows of a host have asked, and what was decided of them: messages in and out, times in seconds.

    A flow that has asked waits until it is granted a rate. Requests are sent again until they are answered, and now and
    then afterwards. A controller that leaves requests unanswered is not waited for: after the fail-safe time their
    flows go on unscheduled, until it answers again.
    """

    def __new__(cls, retry_s: float, refresh_s: float, fail_safe_s: float, sequence: int) -> Self: ...
    def __len__(self) -> int: ...
    def __contains__(self, flow: int) -> bool: ...
    @property
    def sequence(self) -> int:
        """Of the newest message."""
    @property
    def counts(self) -> dict[str, int]:
        """What was decided, by name; without those that are 0."""
    def take_latencies(self) -> list[float]:
        """Return how long decisions took since the last call, each from the first of the requests that it answers."""
    def rate_bps(self, flow: int) -> float:
        """Return the rate on the link that a flow may send at: 0 while it waits, inf where it does not have to ask."""
    def state(self, flow: int) -> Literal["waiting", "granted", "unscheduled"]:
        """Return the state of a flow that has asked; KeyError if it has not."""
    def stamp(self, flow: int) -> int:
        """Return the path that a flow was granted; 0: none of its own."""
    def standing(self) -> tuple[int, int, int]:
        """Return how many flows send as granted, how many wait, and how many send although nothing was decided."""
    def ask(self, flow: int, destination: str, bytes_left: int, now: float) -> None:
        """Take in that a large flow begins: it waits from now on. *destination*: the underlay address of its peer."""
    def left(self, flow: int, bytes_left: int) -> None:
        """Take in how much a flow that has asked has left by now: it goes with its next request."""
    def end(self, flow: int) -> None:
        """Take in that a flow has nothing left, or is gone; of one that has not asked nothing is sent."""
    def connected(self, now: float) -> None:
        """Take in that the controller listens, perhaps another one: ask again for all flows."""
    def decide(self, sequence: int, flow: int, answers: int, rate_bps: int, stamp: int, now: float) -> bool:
        """Take in a decision (rate 0: the flow has to wait). Return True if the flow's rate or path changes by it."""
    def get_timer(self) -> float | None:
        """Return when `handle_timer` has something to do."""
    def handle_timer(self, now: float) -> list[int]:
        """Ask again what is due. Return the flows that wait no longer for a controller that does not answer."""
    def take_messages(self) -> list[tuple[int, int, tuple[str, int] | None]]:
        """Return messages for the controller: sequence, flow, and destination and bytes left (None: finished)."""

class WindowClamp:
    """The sending side of one TCP connection of the host: held, paced and stopped by its receive window.

    *seen*: what is seen of a packet. burst_s: how far the right edge may be ahead of what was sent, in seconds of the
    granted rate; at least two segments, or two steps of the window. (`native/agent/src/admission/window.rs`)
    """

    def __init__(self, burst_s: float) -> None: ...
    @property
    def known(self) -> bool:
        """Whether both SYNs were seen, or the kernel was asked, so that the connection can be held."""
    @property
    def sent_bytes(self) -> int:
        """Payload that has left, each byte once."""
    @property
    def segment_bytes(self) -> int:
        """Most payload of a packet."""
    def join(self, scale: int, segment_bytes: int, most_segment_bytes: int = 0) -> None:
        """Take in what the SYNs of an open connection agreed, and its segments now; after the first `left`.

        most_segment_bytes: of its segments once its peer tells windows with room for two of them.
        """
    def left(self, packet: builtins.bytes, seen: InnerPacket) -> None:
        """Take in a packet, or a super-packet, that the host has sent."""
    def set_rate(self, bytes_per_s: float, now: float) -> None:
        """Let the host send so much payload per second from now on; 0: nothing, inf: whatever TCP lets it."""
    def arrived(self, packet: builtins.bytes, seen: InnerPacket, now: float) -> builtins.bytes:
        """Return a packet of the peer as the host is to get it."""
    def update(self, now: float) -> builtins.bytes | None:
        """Return a packet that tells the host a window that no acknowledgement has; None if there is no need."""
    def deadline(self) -> float | None:
        """Return when `update` may have a window, if nothing comes of the peer by then."""

# Coding (host_agent/coding, native/agent): units, their redundancy and size, what became of them. Times are in seconds.

def decode_probability(code: CodeName, k: int, r: int, blocking_probability: float) -> float:
    """Probability that all k sources are there from the packets that are not blocked, for independent blocking."""

def binomial(n: int, x: int, p: float) -> float:
    """P(X = x) for X ~ Binomial(n, p)."""

def ldpc_failure(k: int, r: int, missing: int) -> float:
    """P(not all of k sources are rebuilt) if *missing* of the k + r packets do not come, as measured."""

def most_repairs(code: CodeName, k: int) -> int:
    """Repairs beyond this number would be of no use for *k* sources, or cannot be."""

def paper_rule(k: int, blocking_probability: float) -> int:
    """r = ceil(k / (1 - pB) - k) (CAPS); the ceiling forgives 1e-9 of rounding, so k = 9, pB = 0.1 gives 1."""

def flow_weight(weight: Weight, sent_bytes: int) -> float:
    """w(D) of a flow that has sent D = *sent_bytes* (HTPC, Eq. 2): 1 up to T_s, 0 from T_w on, linear between."""

def htpc_rule(k: int, loss_rate: float, weight: Weight, sent_bytes: int, window: int | None = None) -> int:
    """r of k sources, the part k / c of x / (1 - P_L) - c repairs of a window of c packets (HTPC, Eq. 3-5; None: k)."""

def target_rule(code: CodeName, k: int, blocking_probability: float, target: float, max_r: int) -> int:
    """Smallest r <= max_r whose `decode_probability` is at least *target*; max_r if there is none."""

class CodingRules:
    """Redundancy and unit size under one policy; answers are remembered."""

    def __init__(self, coding: CodingPolicy) -> None: ...
    def repair_bound(self, k: int) -> int: ...
    def repairs(
        self, blocking_probability: float, k: int, sent_bytes: int = 0, window: int | None = None
    ) -> int: ...
    def optimal_k(
        self,
        blocking_probability: float,
        rtt_s: float,
        blocked_rtt_s: float,
        packet_time_s: float,
        flow_packets: int,
    ) -> int: ...
    def completion_time_s(
        self,
        k: int,
        blocking_probability: float,
        rtt_s: float,
        blocked_rtt_s: float,
        packet_time_s: float,
        flow_packets: int,
    ) -> float: ...

Closed = TypeVar("Closed")

class UnitEncoder(Generic[Closed]):
    """One sending flow: packets go in as they leave, a unit comes out when it closes (`host_agent.coding.unit`)."""

    def __new__(
        cls, rules: CodingRules, seed: int, closed: Callable[[int, int, int, int, int, list[Piece]], Closed]
    ) -> Self:
        """*closed* makes a unit: position, k, r, seed, bytes of a symbol, packets as they were taken in."""
    @property
    def units(self) -> int:
        """Units closed so far, and in `repairs` the repairs that they want."""
    @property
    def repairs(self) -> int: ...
    @property
    def open_packets(self) -> int:
        """Packets in the unit that is still open."""
    @property
    def room(self) -> int:
        """Packets that the unit still takes until it closes at its size."""
    def set_redundancy(
        self, blocking_probability: float, k: int, sent_bytes: int = 0, window: int | None = None
    ) -> None:
        """What the next units aim at: pB (0..1), and unit size k (cut to 1..max_k).

        *sent_bytes*: payload that the flow has sent before them. *window*: its congestion window in packets, if known.
        """
    def take(self, position: int, packet: bytes, now: float, push: bool) -> list[Closed]:
        """Take in the source packet that leaves as *position* (modulo 2**32; +1 for each of the flow).

        Returns the units that want repairs after it: the one that this packet closes, and before it, an older one that
        had to close because *position* does not follow it. Raises ValueError: the packet is empty or above 65535 B.
        """
    def take_rows(
        self,
        position: int,
        rows: NDArray[uint8],
        begin: int,
        end: int,
        front: int,
        last_bytes: int,
        now: float,
        push: bool,
    ) -> list[Closed]:
        """As `take`, of packets at consecutive positions, `room` at most; *push* is the last one's.

        They lie in rows *begin* to *end* behind *front* bytes of each and stay there unchanged; the last one has
        *last_bytes*.
        """
    def deadline(self) -> float | None:
        """When the open unit has to be closed; None while no unit is open."""
    def end(self) -> list[Closed]:
        """Close the open unit, whatever its deadline (end of flow, change of policy or class)."""

class WindowEstimate:
    """Congestion window of one TCP flow and direction. Sequence numbers are modulo 2**32."""

    INITIAL_WINDOW: Final[int]
    def sent(self, sequence: int, payload: int, size: int | None = None) -> None:
        """A segment of *payload* bytes from *sequence* on leaves, for the first time or again.

        Or segments, of *size* bytes each but for the last.
        """
    def acknowledged(self, ack: int) -> None:
        """The receiver has everything before *ack*."""
    def packets(self) -> int:
        """The window in packets of the flow's largest payload, at least 1."""

class Margin:
    """Correction of pB towards the hosts of one leaf, for one target; in logits, `MOST` at most."""

    MOST: Final[float]
    def __init__(self, target: float) -> None: ...
    @property
    def target(self) -> float: ...
    @property
    def logits(self) -> float: ...
    @property
    def successes(self) -> int: ...
    @property
    def failures(self) -> int: ...
    def corrected(self, blocking_probability: float) -> float:
        """The pB to assume for the next unit; 0 stays 0."""
    def learn(self, success: bool, most: bool = False) -> None:
        """A unit that was sent while something was blocked has come to its end.

        *most*: it had as many repairs as it may have; its failure asks for more in vain.
        """

class SentUnit:
    """One unit of one flow towards one peer."""

    def __init__(self, margin: Margin) -> None: ...
    @property
    def symbols(self) -> int:
        """How many of it have left."""

class Outcomes:
    """The undecided units towards one peer; the last 16384 datagrams and units count.

    A symbol is in time if it took no longer than *in_time_s* above the fastest of its unit.
    """

    in_time_s: float
    def __init__(self, in_time_s: float = 0.008) -> None: ...
    def __len__(self) -> int:
        """Datagrams that the peer has not reported."""
    def sent(self, number: int, unit: SentUnit) -> None:
        """Datagram *number* leaves with a source or a repair of this unit."""
    def sent_many(self, number: int, count: int, unit: SentUnit) -> None: ...
    def closed(self, unit: SentUnit, k: int, most: bool = False) -> None:
        """All symbols of the unit have left; *k* of them are sources. *most*: it could not have had more repairs."""
    def arrived(self, number: int, delay_us: int) -> None:
        """The peer has got the datagram after *delay_us* (unsigned 32 bit, arbitrary offset)."""
    def lost(self, first: int, count: int) -> None:
        """The peer has given up *count* datagrams from number *first* on."""

class BlockingEstimator:
    """Estimates pB of a peer's next packet. Times are in seconds and must not run backwards."""

    MAX_BLOCKING_PROBABILITY: Final[float]
    PRIOR: Final[float]
    prior: float
    """pB while nothing is known of this peer; an agent may set it to what it knows of its other peers."""
    @property
    def overdue_s(self) -> float:
        """See `path_loss`."""
    def ack_rtt(self, rtt_s: float, now: float) -> None:
        """An inner ACK showed this round-trip time."""
    def path_delay(self, stamp: int, delay_us: int, now: float) -> None:
        """A datagram over path *stamp* took *delay_us* one way: unsigned 32 bit, arbitrary offset."""
    def path_loss(self, stamp: int | None, now: float) -> None:
        """A datagram is lost or overdue; *stamp* is its path if that is known. Once for each datagram.

        It is overdue when the peer has reported one that was sent more than `overdue_s` later: reports of blocked paths
        are late by as much as these are blocked, so those that come first all speak of the others.
        """
    def told(self, arrived: int, overdue: int, now: float) -> None:
        """One feedback: of coded datagrams not reported before, so many had arrived, so many were overdue or lost.

        Each coded datagram is counted once, on whatever path.
        """
    def blocking_probability(self, now: float) -> float:
        """pB, 0 .. 1; of all but `AckShareEstimator` at most MAX_BLOCKING_PROBABILITY."""
    def rtt_s(self) -> float:
        """Round-trip time over paths that are not blocked, seconds; 0.0 while nothing is known."""
    def blocked_rtt_s(self) -> float:
        """Round-trip time over blocked paths, seconds; at least `rtt_s`."""

class PathsEstimator(BlockingEstimator):
    """The share of paths whose recent one-way delay is far above the best (native/agent/src/blocking/paths.rs)."""

    def __init__(self, packet_time_s: float, max_age_s: float | None = None) -> None: ...
    def paths(self, now: float) -> dict[int, tuple[float, float]]:
        """Recent paths by stamp: (last delay above the best in seconds, share of blocked datagrams)."""

class RttEstimator(BlockingEstimator):
    """The share of ACKs whose RTT is above twice the smoothed average of those before."""

    MIN_SAMPLES: Final[int]
    def __init__(self, packet_time_s: float, interval_s: float | None = None) -> None: ...

class LossRateEstimator(BlockingEstimator):
    """P_L of HTPC's Eq. 1, where what is overdue counts as lost."""

    MIN_SAMPLES: Final[int]
    def __init__(self, packet_time_s: float, sampling_s: float | None = None) -> None: ...

class AckShareEstimator(BlockingEstimator):
    """As printed (HTPC, Eq. 4; CAPS, sections VI and IX-C): ACKs of a sampling period above twice its average RTT.

    *smoothed*: above twice RTT_smooth = 7/8 RTT_smooth + 1/8 of that average.
    """

    def __init__(
        self, packet_time_s: float, sampling_s: float | None = None, smoothed: bool = False
    ) -> None: ...

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
