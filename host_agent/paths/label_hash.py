"""One path per flow, by hash over the paths that its class may use: Freeway's two kinds of flow, each in its part.

W. Wang, Y. Sun, K. Zheng, M. A. Kaafar, D. Li, Z. Li: "Freeway: Adaptively Isolating the Elephant and Mice Flows on
Different Transmission Paths", IEEE ICNP 2014: low-latency paths carry the short flows, high-throughput paths the
long ones. The controller says which are which (`protocol.control.Paths.by_class`).
"""

from __future__ import annotations

from host_agent.paths.base import Flow, PathPolicy, Route, flow_entropy


class LabelHash(PathPolicy):
    """Rendezvous hashing (Thaler and Ravishankar, 1998): when a path comes or goes, only its own flows move."""

    def __init__(self) -> None:
        self._chosen: dict[int, tuple[tuple[int, ...], int]] = {}
        """By flow: the labels that were to choose from, and which it was."""

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        chosen = self._chosen.get(flow.id)
        if chosen is not None and chosen[0] is route.labels:
            return chosen[1]
        if not route.labels:
            return flow_entropy(flow)
        port = max(route.labels, key=lambda label: _weight(flow.hash, label))
        self._chosen[flow.id] = route.labels, port
        return port

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        return [self.entropy(flow, route, size, now)] * count

    def ahead(self, flow: Flow, route: Route) -> int | None:
        chosen = self._chosen.get(flow.id)
        if chosen is not None and chosen[0] is route.labels:
            return chosen[1]
        return None if route.labels else flow_entropy(flow)

    def forget(self, flow: int) -> None:
        self._chosen.pop(flow, None)


def _weight(flow_hash: int, label: int) -> int:
    value = (flow_hash ^ label * 0x9E3779B1) & 0xFFFFFFFF  # then the finish of MurmurHash3
    value = (value ^ value >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return value ^ value >> 16
