"""Path policies (native/agent/src/paths). Times in seconds.

`rng` gives a draw that seeds the policy's own generator.
"""

from collections.abc import Sequence

from numpy.random import Generator

from host_agent.paths.base import Flow, PathPolicy
from protocol.policy import PathSettings
from protocol.underlay import TrafficClass

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
        self,
        flow: int,
        leaf: str,
        entropy: int,
        stamp: int,
        delay_s: float,
        sent: float,
        marked: bool = False,
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
    @property
    def marked(self) -> bool:
        """Whether a switch marked it (ECN)."""

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

class CompiledPathPolicy(PathPolicy):
    """A policy of native/agent. (Registered as a `PathPolicy`, not derived.)"""

    def __init__(self, settings: PathSettings, packet_time_s: float, rng: Generator) -> None:
        """packet_time_s: of 1500 B on the slowest fabric link. Raises ValueError for `file`, which is not compiled."""
    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int: ...
    def grant(self, flow: int, stamp: int) -> None:
        """The path of a flow (`FlowRef.id`) from now on; what is no path stamp: none of its own."""

def flow_entropy(flow: Flow, turn: int = 0) -> int:
    """Return the EV of a flow where no path can be named; each *turn* has its own."""

def path_loads_of_others(
    loads: Sequence[tuple[dict[int, int], dict[str, dict[int, float]]]],
) -> list[tuple[dict[int, int], dict[str, dict[int, float]]]]:
    """Return for each agent of a leaf what the others have: short flows by stamp, delays by leaf and stamp.

    Flows in sum, without paths that have none; of delays the longest.
    """
