"""One entropy value per flow: what ECMP does, whichever group a switch uses (RFC 2992)."""

from __future__ import annotations

from host_agent.paths.base import Flow, PathPolicy, Route, flow_entropy


class FlowHash(PathPolicy):
    """A function of the flow alone."""

    by_size = False

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        return flow_entropy(flow)

    def ahead(self, flow: Flow, route: Route) -> int:
        return flow_entropy(flow)

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        return [flow_entropy(flow)] * count
