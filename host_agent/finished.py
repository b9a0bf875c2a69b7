"""Flows of this host that have ended, until the controller is told of them."""

from __future__ import annotations

from typing import Final

from host_agent.addresses import text
from host_agent.flows import SendFlow
from host_agent.inner_packet import addresses, ports
from protocol.control import FinishedFlows

MOST_KEPT: Final = 4096
"""That wait; of more the controller is not told."""
MOST_TOLD: Final = 512
"""In one message: reading it is not to hold up the controller."""


class FinishedLog:
    """Columns of `FinishedFlows`, filled as flows end; never more than `MOST_KEPT` flows."""

    def __init__(self) -> None:
        self._flows: list[tuple[bytes, int, float, float]] = []
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._flows)

    def add(self, flow: SendFlow, now: float) -> None:
        """*flow* sends no more: once for each connection, and only if it has sent something."""
        if flow.told or not flow.payload:
            return
        flow.told = True
        if len(self._flows) >= MOST_KEPT:
            self.dropped += 1
            return
        self._flows.append((flow.key, flow.payload, flow.first, now))

    def take(self, now: float) -> FinishedFlows | None:
        """What ended since the last time, the oldest `MOST_TOLD`; None: nothing."""
        if not self._flows:
            return None
        flows, self._flows = self._flows[:MOST_TOLD], self._flows[MOST_TOLD:]
        between = [addresses(key) for key, _, _, _ in flows]
        at = [ports(key) for key, _, _, _ in flows]
        return FinishedFlows(
            now_s=now,
            protocol=[key[0] for key, _, _, _ in flows],
            source=[text(source) for source, _ in between],
            source_port=[port for port, _ in at],
            destination=[text(destination) for _, destination in between],
            destination_port=[port for _, port in at],
            bytes=[payload for _, payload, _, _ in flows],
            start_s=[first for _, _, first, _ in flows],
            end_s=[end for _, _, _, end in flows],
        )

    def clear(self) -> None:
        """Nobody wants to hear of them."""
        self._flows.clear()
