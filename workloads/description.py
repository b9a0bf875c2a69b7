"""What a workload is, as an experiment's spec writes it: plain frozen data, nothing that draws or sends.

Sizes are bytes of payload (10^3: kB, 10^6: MB), times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from msgspec import Meta

SizeKind = Literal["uniform", "fixed", "mix", "table"]
ArrivalKind = Literal["poisson", "burst"]
PatternName = Literal["random", "permutation", "incast", "left-to-right"]
CongestionControl = Literal["cubic", "reno", "bbr"]
TcpProfile = Literal["linux", "ns2"]

SHORT_LIMIT_BYTES: Final = 100_000
"""A flow is short if it carries less payload than this."""

FIRST_SOURCE_PORT: Final = 10_000
LAST_SOURCE_PORT: Final = 32_000
SOURCE_PORTS: Final = LAST_SOURCE_PORT - FIRST_SOURCE_PORT + 1
"""That are planned: below those that kernels give out by themselves (32768 on)."""
MOST_LONG_FLOWS: Final = 1000
MOST_LAB_FLOWS: Final = (SOURCE_PORTS - MOST_LONG_FLOWS) // 2
"""Of one run on switches, beside background flows: each flow, and each copy of one, has a source port of its own."""
MOST_FLOWS: Final = 1_000_000
"""Of one simulated run."""
PORT_CHANGE: Final = 100
LAST_SERVER_PORT: Final = FIRST_SOURCE_PORT - 1 - PORT_CHANGE
"""Of an application: where its servers listen after a change is no flow's source port either."""
LONGEST_LABEL: Final = 31
Label = Annotated[str, Meta(pattern=f"^[a-z0-9][a-z0-9._-]{{0,{LONGEST_LABEL - 1}}}$")]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
FromOne = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Distribution of flow sizes."""

    kind: Annotated[
        SizeKind,
        Meta(
            description="uniform: low_bytes up to high_bytes; fixed: bytes; mix: both; table: a published distribution"
        ),
    ]
    low_bytes: Annotated[FromOne | None, Meta(description="smallest size in bytes (kinds uniform, mix)")] = (
        None
    )
    high_bytes: Annotated[
        FromOne | None, Meta(description="sizes stay below this many bytes (kinds uniform, mix)")
    ] = None
    bytes: Annotated[
        FromOne | None, Meta(description="the size in bytes (kind fixed; of the large flows, kind mix)")
    ] = None
    large_share: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="share of the flows that have `bytes` (kind mix)"),
    ] = None
    table: Annotated[str | None, Meta(description="name of a flow-size table (kind table)")] = None
    """Of `workloads/flow_sizes/`."""
    scale: Annotated[Positive, Meta(description="factor on every size")] = 1.0


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When flows start."""

    kind: Annotated[ArrivalKind, Meta(description="poisson: steady; burst: only during ON periods")] = (
        "poisson"
    )
    rate_per_s: Annotated[
        Positive | None, Meta(description="flows per second (of an ON period, if burst)")
    ] = None
    load: Annotated[
        Positive | None,
        Meta(description="share of the fabric's capacity between the sending and receiving hosts"),
    ] = None
    on_s: Annotated[Positive | None, Meta(description="seconds of an ON period (kind burst)")] = None
    off_s: Annotated[
        NotNegative | None, Meta(description="seconds of silence between two ON periods (kind burst)")
    ] = None


@dataclass(frozen=True, slots=True)
class Application:
    """One of several applications whose flows are mixed."""

    name: Annotated[Label, Meta(description="what tables call it")]
    sizes: Annotated[Sizes, Meta(description="how large its flows are")]
    share: Annotated[Positive, Meta(description="its part of the load, relative to the others'")] = 1.0
    port: Annotated[
        Annotated[int, Meta(ge=1024, le=LAST_SERVER_PORT)] | None,
        Meta(description="TCP port of its servers; left out: the generator's"),
    ] = None
    hosts: Annotated[
        Annotated[tuple[str, ...], Meta(min_length=2)] | None,
        Meta(description="names of the hosts that run it, clients and servers; left out: all"),
    ] = None


@dataclass(frozen=True, slots=True)
class Flows:
    """Flows of drawn sizes: `count` of them, or as many as arrive within `duration_s`."""

    sizes: Annotated[Sizes | None, Meta(description="how large they are; this or applications")] = None
    arrivals: Annotated[Arrivals, Meta(description="when they start")] = field(default_factory=Arrivals)
    pattern: Annotated[PatternName, Meta(description="who sends to whom")] = "left-to-right"
    count: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_FLOWS)] | None,
        Meta(description="number of flows of one run; this or duration_s"),
    ] = None
    duration_s: Annotated[
        Positive | None, Meta(description="seconds over which flows arrive; this or count")
    ] = None
    applications: Annotated[
        tuple[Application, ...], Meta(description="several kinds of flows, mixed; this or sizes")
    ] = ()
    lead_in_s: Annotated[
        NotNegative,
        Meta(
            description="flows that start in these first seconds are sent, but not counted: the fabric fills, types of "
            "flows are learnt"
        ),
    ] = 0.0
    changes_port: Annotated[
        str | None,
        Meta(
            description=f"application whose servers listen {PORT_CHANGE} ports higher after lead_in_s (TPFS, Fig. 11)"
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class LongFlows:
    """Background flows without an end: they send from the start of a run until it is over."""

    number: Annotated[
        int,
        Meta(
            ge=1, le=MOST_LONG_FLOWS, description="background flows that send from a run's start to its end"
        ),
    ]
    pattern: Annotated[
        PatternName,
        Meta(
            description="who sends to whom; sources, and with left-to-right destinations, are dealt out in turn"
        ),
    ] = "left-to-right"


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that is sent in one run."""

    flows: Annotated[Flows, Meta(description="flows that end")]
    long_flows: Annotated[LongFlows | None, Meta(description="background flows")] = None
    short_limit_bytes: Annotated[
        FromOne, Meta(description="a flow is short if it carries less payload than this")
    ] = SHORT_LIMIT_BYTES
    large_limit_bytes: Annotated[
        FromOne | None,
        Meta(
            description="flows of at least this many bytes are shown as large, and those between as medium; "
            "left out: not"
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Transport:
    """How the senders' TCP behaves."""

    congestion_control: Annotated[
        CongestionControl | None,
        Meta(description="of the senders' sockets; default cubic, with the ns2 profile reno"),
    ] = None
    profile: Annotated[
        TcpProfile,
        Meta(
            description="linux: as the kernel comes; ns2: near the papers' simulated TCP: no RACK, no tail loss probe, "
            "three duplicate ACKs are a loss (on switches with SACK, and reductions for late packets are undone)"
        ),
    ] = "linux"

    @property
    def congestion(self) -> CongestionControl:
        """Return the congestion control that sockets get."""
        return self.congestion_control or ("reno" if self.profile == "ns2" else "cubic")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host that sends and receives: its name, the index of its leaf (1..) and its overlay address."""

    host: str
    leaf: int
    address: str
