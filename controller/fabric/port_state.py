"""What is known of one port of a switch, as far as links are found by it."""

from __future__ import annotations

from dataclasses import dataclass

from controller.fabric.graph import PortRef
from controller.fabric.switch_data import Port


@dataclass(slots=True)
class PortState:
    """What link discovery knows of a port; times in seconds of the caller's clock."""

    port: Port
    up_since: float = 0.0
    sent: int = 0
    next_send: float | None = None
    """None: the port is down or its switch is not connected."""
    peer: PortRef | None = None
    """Sender of the last frame since the port came up."""
    received_at: float = 0.0
