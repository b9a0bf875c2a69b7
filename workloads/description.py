"""What a workload is, as an experiment's spec writes it: plain frozen data, nothing that draws or sends.

Sizes are bytes of payload (10^3: kB, 10^6: MB), times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

SizeKind = Literal["uniform", "fixed", "mix", "table"]
ArrivalKind = Literal["poisson", "burst"]
PatternName = Literal["random", "permutation", "incast", "left-to-right"]
CongestionControl = Literal["cubic", "reno", "bbr"]
TcpProfile = Literal["linux", "ns2"]
TrafficClassName = Literal["short", "long"]
Replication = Literal["flow", "syn"]
"""What a sender opens twice: a whole flow (RepFlow), or its connection only (RepSYN)."""

SHORT_LIMIT_BYTES: Final = 100_000
"""A flow is short if it carries less payload than this."""
HEADER_BYTES: Final = 16
"""The generator's own header is the first part of a flow's payload, so no flow is smaller than this."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Distribution of flow sizes.

    uniform: `low_bytes` up to, not including, `high_bytes`; fixed: `bytes`; mix: a share `large_share` of the flows
    as fixed, the others as uniform; table: a cumulative distribution
    of `workloads/flow_sizes/` by name. `scale` multiplies every drawn size.
    """

    kind: SizeKind
    low_bytes: int | None = None
    high_bytes: int | None = None
    bytes: int | None = None
    large_share: float | None = None
    table: str | None = None
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When flows start: Poisson at `rate_per_s` (flows per second) or at a `load` (share of the fabric).

    burst: the same process, but only during ON periods of `on_s`, with silence of `off_s` between them; the
    rate or load is that of an ON period.
    """

    kind: ArrivalKind = "poisson"
    rate_per_s: float | None = None
    load: float | None = None
    on_s: float | None = None
    off_s: float | None = None


@dataclass(frozen=True, slots=True)
class Application:
    """One of several applications whose flows are mixed.

    share: its part of the load, relative to the others'. port: where its servers listen (None: the generator's
    port). hosts: names of those that run it, both ends of its flows are among them (None: all).
    """

    name: str
    sizes: Sizes
    share: float = 1.0
    port: int | None = None
    hosts: tuple[str, ...] | None = None


PORT_CHANGE: Final = 100


@dataclass(frozen=True, slots=True)
class Flows:
    """Flows of drawn sizes: `count` of them, or as many as arrive within `duration_s`.

    Their sizes are those of `sizes`, or of `applications`. Flows that start in the first `lead_in_s` are sent, but
    not counted: the fabric fills, and what is to be learnt of traffic is learnt. changes_port: name of an application
    whose servers listen `PORT_CHANGE` higher after that (TPFS, Fig. 11); None: none does.
    """

    sizes: Sizes | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)
    pattern: PatternName = "left-to-right"
    count: int | None = None
    duration_s: float | None = None
    applications: tuple[Application, ...] = ()
    lead_in_s: float = 0.0
    changes_port: str | None = None


@dataclass(frozen=True, slots=True)
class LongFlows:
    """Background flows without an end: they send from the start of a run until it is over."""

    number: int
    pattern: PatternName = "left-to-right"


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that is sent in one run.

    large_limit_bytes: flows of at least that many bytes are "large", those that are neither short nor large
    "medium", and both are reported by themselves, too; None: they are not.
    """

    flows: Flows
    long_flows: LongFlows | None = None
    short_limit_bytes: int = SHORT_LIMIT_BYTES
    large_limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Transport:
    """How the senders' TCP behaves.

    ns2 mimics the simulated TCP of the papers: no RACK, no tail loss probe, three duplicate ACKs are a loss.
    The congestion control is cubic with the linux profile and reno with ns2 unless it is named.
    """

    congestion_control: CongestionControl | None = None
    profile: TcpProfile = "linux"

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
