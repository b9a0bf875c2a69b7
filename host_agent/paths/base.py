"""What every path policy is."""

from __future__ import annotations

from abc import ABC, abstractmethod


class PathPolicy(ABC):
    """Draws the entropy value (EV) of each packet: EV_FIRST..EV_LAST."""

    @abstractmethod
    def entropy(self, flow_hash: int, size: int, now: float) -> int:
        """EV of the next packet of a flow.

        Args:
            flow_hash: 32-bit hash of the inner 5-tuple, the same for all packets of a flow and direction.
            size: bytes of the inner packet.
            now: seconds.
        """

    def entropies(self, flow_hash: int, size: int, count: int, now: float) -> list[int]:
        """EVs of the next *count* packets of a flow, all of *size* bytes."""
        return [self.entropy(flow_hash, size, now) for _ in range(count)]
