"""What every path policy is, and what it is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Protocol

from protocol.underlay import EV_FIRST, EV_LAST, LABEL_FIRST, TrafficClass

AHEAD: Final = 16
"""Packets of which a policy says beforehand what they get, at most."""
EVS: Final = EV_LAST - EV_FIRST + 1
"""How many entropy values there are."""


class Flow(Protocol):
    """What a policy knows of a flow: an inner 5-tuple and direction, or the agent's own feedback to one peer."""

    @property
    def id(self) -> int:
        """The same for all packets of a flow, and of no two that are alive. Below 0: our feedback, not reported."""

    @property
    def hash(self) -> int:
        """32 bits, a function of the 5-tuple."""


@dataclass(slots=True, eq=False)
class Route:
    """A destination leaf as packets of one traffic class may reach it; one object for the agent's whole life.

    labels: source ports that name the live paths (`protocol.underlay`), ascending; a new tuple whenever they change.
    Empty while they are not known, and towards hosts of our own leaf.
    """

    leaf: str
    traffic_class: TrafficClass
    labels: tuple[int, ...] = ()


class Report(NamedTuple):
    """A peer got one of our datagrams.

    entropy: source port that it left with. stamp: path that it took (0: no top tier). delay_s: its one-way delay in
    seconds, above the least to that peer. sent: when it left, seconds.
    """

    flow: int
    leaf: str
    entropy: int
    stamp: int
    delay_s: float
    sent: float


class Load(NamedTuple):
    """What agents of a leaf tell each other of its paths.

    short_flows: those that are active, by path stamp. delays_s: what packets wait there, seconds above the least, by
    destination leaf and path stamp; a path that is missing is free, or nobody knows.
    """

    short_flows: dict[int, int]
    delays_s: dict[str, dict[int, float]]


class Turn(NamedTuple):
    """The source ports of the next packets, in this order, of whichever flows share ``owner``."""

    owner: object
    ports: list[int]


def flow_entropy(flow: Flow, turn: int = 0) -> int:
    """The EV that stands for a flow wherever no path can be named; another one each *turn*."""
    return EV_FIRST + ((flow.hash >> 6) + turn * 40503) % EVS


def stamp_of_label(label: int) -> int:
    """Path stamp of the path that a source port names."""
    return label - LABEL_FIRST


class PathPolicy(ABC):
    """Chooses the source port of each packet: an entropy value, EV_FIRST..EV_LAST, or one of the route's labels.

    One object serves all classes of a scheme that name the same policy with the same parameters, so a flow that grows
    long keeps its state. What is kept of a flow is kept by ``flow.id``, until `forget`.
    """

    learns: ClassVar[bool] = False
    """Whether `reported` and `lost` are of any use."""
    by_size: ClassVar[bool] = True
    """Whether packets' sizes decide anything."""

    @abstractmethod
    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        """Source port of the next packet of a flow.

        Args:
            size: bytes of the inner packet.
            now: seconds.
        """

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        """Source ports of the next *count* packets of a flow: all of *size* bytes but the last one, of *last*."""
        ports = [self.entropy(flow, route, size, now) for _ in range(count - 1)]
        ports.append(self.entropy(flow, route, last, now))
        return ports

    def ahead(self, flow: Flow, route: Route) -> int | Turn | None:
        """What `entropy` will give next, whatever the packets' sizes and times; draws nothing.

        A number: always this one, as long as nobody reports anything and the route's labels stay. None: it depends.
        """
        return None

    def reported(self, report: Report, now: float) -> None:  # noqa: B027 (most policies do not learn)
        """A datagram that this policy sent has arrived. Reports come in any order, and may not come at all."""

    def lost(self, flow: int, leaf: str, entropy: int, now: float) -> None:  # noqa: B027
        """The peer has given up a datagram of that flow which left with that source port."""

    def forget(self, flow: int) -> None:  # noqa: B027
        """The flow is over."""

    def load(self, now: float) -> Load | None:
        """What the other agents of our leaf are to know of us; None: nothing."""
        return None

    def set_load(self, load: Load, now: float) -> None:  # noqa: B027
        """What the other agents of our leaf have together, from now on."""
