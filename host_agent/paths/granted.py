"""The path that the controller has granted a flow (CAPTON's grants with a stamp): HyLine's routing of whole flows.

S. Abbasloo, Y. Xu, H. J. Chao: "HyLine: a Simple and Practical Flow Scheduling for Commodity Datacenters", IFIP
Networking 2018: flows above a threshold get a time and a path from a central entity, the others go by themselves.
"""

from __future__ import annotations

from host_agent.paths.base import Flow, PathPolicy, Route
from host_agent.paths.label_hash import LabelHash
from protocol.underlay import is_stamp, label_of


class Granted(PathPolicy):
    """One path for each flow: the granted one while it lives, else one by hash, as for flows that do not ask."""

    def __init__(self) -> None:
        self._hashed = LabelHash()
        self._labels: dict[int, int] = {}
        """By flow."""

    def grant(self, flow: int, stamp: int) -> None:
        """The path of a flow (`Flow.id`) from now on; what is no path stamp: none of its own."""
        if is_stamp(stamp):
            self._labels[flow] = label_of(stamp)
        else:
            self._labels.pop(flow, None)

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        label = self._labels.get(flow.id)
        if label is not None and label in route.labels:
            return label
        return self._hashed.entropy(flow, route, size, now)

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        return [self.entropy(flow, route, size, now)] * count

    def forget(self, flow: int) -> None:
        self._labels.pop(flow, None)
        self._hashed.forget(flow)
