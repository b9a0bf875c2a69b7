"""What every path policy is: the shape of the compiled ones (native/agent/src/paths), and the base of one in a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

from capstan_native import Load, Report, Route, flow_entropy

__all__ = ["Flow", "Load", "PathPolicy", "Report", "Route", "flow_entropy"]


class Flow(Protocol):
    """What a policy knows of a flow: an inner 5-tuple and direction, or the agent's own feedback to one peer."""

    @property
    def id(self) -> int:
        """Return a number that all packets of a flow have, and no other flow that is alive. Below 0: our feedback,
        not reported.
        """

    @property
    def hash(self) -> int:
        """Return 32 bits, a function of the 5-tuple."""


class PathPolicy(ABC):
    """Chooses the source port of each packet: an entropy value, EV_FIRST..EV_LAST, or one of the route's labels.

    One object serves all classes of a scheme that name the same policy with the same parameters, so a flow that grows
    long keeps its state. What is kept of a flow is kept by ``flow.id``, until `forget`.
    """

    learns: ClassVar[bool] = False
    """Whether `reported` and `lost` are of any use."""

    @abstractmethod
    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        """Return the source port of the next packet of a flow.

        Args:
            size: bytes of the inner packet.
            now: seconds.
        """

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        """Return the source ports of the next *count* packets of a flow: all of *size* bytes but the last, of
        *last*.
        """
        ports = [self.entropy(flow, route, size, now) for _ in range(count - 1)]
        ports.append(self.entropy(flow, route, last, now))
        return ports

    def reported(self, report: Report, now: float) -> None:  # noqa: B027 (most policies do not learn)
        """Note that a datagram of this policy has arrived. Reports come in any order, and may not come at
        all.
        """

    def lost(self, flow: int, leaf: str, entropy: int, now: float) -> None:  # noqa: B027
        """Note that the peer has given up a datagram of that flow which left with that source port."""

    def forget(self, flow: int) -> None:  # noqa: B027
        """Note that the flow is over."""

    def load(self, now: float) -> Load | None:
        """Return what the other agents of our leaf are to know of us; None: nothing."""
        return None

    def set_load(self, load: Load, now: float) -> None:  # noqa: B027
        """Set what the other agents of our leaf have together, from now on."""
