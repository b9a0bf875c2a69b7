"""All settings of a simulated run, with the defaults of the public trace's reference runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from simulation.fabrics import Fabric, SettingsError, picoseconds
from simulation.tcp import Tcp

Queue = Literal["fifo", "strict", "queues", "pfabric"]
Paths = Literal["random", "turn", "hash", "sum"]

PATHS: Final[Mapping[Paths, str]] = {
    "turn": "each host's packets in turn over the spines (YAPS's spray)",
    "random": "each packet on a path at random",
    "sum": "source + destination + flow, modulo the paths (YAPS's hash)",
    "hash": "each direction of a flow on one path, by a seeded hash",
}


@dataclass(frozen=True, slots=True)
class Sharing:
    """A buffer of every switch that its ports share: a queue may hold alpha times what is free of it.

    Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998.
    """

    bytes: int
    alpha: float = 1.0


@dataclass(frozen=True, slots=True)
class Buffer:
    """Of every port, the hosts' own too; without a limit it is endless.

    shared: of switches' ports, beside the limit of each; None: they share nothing.
    mark_from_packets: so many waiting packets, the arriving one counted, mark it if it can be marked; 0: never.
    drops_unmarkable: it is dropped if it cannot be marked.
    queues: with queue `queues`, so many strict ones with a buffer each.
    """

    queue: Queue = "fifo"
    limit_bytes: int | None = None
    limit_packets: int | None = None
    mark_from_packets: int = 0
    queues: int = 8
    shared: Sharing | None = None
    drops_unmarkable: bool = False

    @property
    def limit(self) -> str:
        """Return what a port holds, in words."""
        if self.limit_bytes is not None:
            return f"{self.limit_bytes} B"
        return "endless" if self.limit_packets is None else f"{self.limit_packets} packets"

    def to_native(self) -> dict[str, Any]:
        """Return the buffer as `capstan_native.Simulation` takes it."""
        return {
            "discipline": self.queue,
            "limit_bytes": self.limit_bytes,
            "limit_packets": self.limit_packets,
            "mark_from_packets": self.mark_from_packets,
            "drops_unmarkable": self.drops_unmarkable,
            "queues": self.queues,
            "shared": None if self.shared is None else (self.shared.bytes, self.shared.alpha),
        }


@dataclass(frozen=True, slots=True)
class FixedWindow:
    """A window of so many packets that never changes, and no timer: for endless queues."""

    window: int = 12

    def to_native(self) -> dict[str, Any]:
        """Return the transport as `capstan_native.Simulation` takes it."""
        return {"kind": "window", "window": self.window}


@dataclass(frozen=True, slots=True)
class PFabricHosts:
    """pFabric's hosts by the rules of YAPS: windows in packets, and a fixed time-out."""

    initial_window: int = 12
    largest_window: int = 15
    timeout_us: float = 45.0

    def to_native(self) -> dict[str, Any]:
        """Return the transport as `capstan_native.Simulation` takes it."""
        return {
            "kind": "pfabric",
            "initial_window": self.initial_window,
            "largest_window": self.largest_window,
            "timeout_ps": picoseconds(self.timeout_us),
        }


Transport = FixedWindow | PFabricHosts | Tcp


@dataclass(frozen=True, slots=True)
class Settings:
    """A run but for its flows. Lengths in bytes; payload: data in a full packet."""

    fabric: Fabric = field(default_factory=Fabric)
    buffer: Buffer = field(default_factory=Buffer)
    transport: Transport = field(default_factory=FixedWindow)
    paths: Paths = "turn"
    seed: int = 1
    payload_bytes: int = 1460
    header_bytes: int = 40
    acknowledgement_bytes: int = 40

    def to_native(self) -> dict[str, Any]:
        """Return the settings as `capstan_native.Simulation` takes them, but for the transport."""
        if not 0 <= self.seed < 2**64:
            raise SettingsError(f"seed {self.seed}: give 0 to 2^64 - 1")
        return {
            "fabric": self.fabric.to_native(),
            "buffer": self.buffer.to_native(),
            "payload_bytes": self.payload_bytes,
            "header_bytes": self.header_bytes,
            "acknowledgement_bytes": self.acknowledgement_bytes,
            "balancing": self.paths,
            "seed": self.seed,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a result's JSON document has them."""
        return asdict(self) | {"transport": self.transport.to_native()}
