"""One entropy value per flow: what ECMP does, whichever group a switch uses (RFC 2992)."""

from __future__ import annotations

from host_agent.paths.base import PathPolicy
from protocol.underlay import EV_FIRST, EV_LAST


class FlowHash(PathPolicy):
    """A function of the flow alone."""

    def entropy(self, flow_hash: int, size: int, now: float) -> int:
        return EV_FIRST + (flow_hash >> 6) % (EV_LAST - EV_FIRST + 1)

    def entropies(self, flow_hash: int, size: int, count: int, now: float) -> list[int]:
        return [self.entropy(flow_hash, size, now)] * count
