"""What the OpenFlow shell says, besides what the control plane does."""

from __future__ import annotations

from dataclasses import dataclass

from controller.openflow.errors import SwitchError
from controller.plane.effects import Event
from controller.shell.confirmations import ModeSwitched


@dataclass(frozen=True, slots=True)
class SwitchRefused:
    """A switch answered with an error."""

    at: float
    error: SwitchError


@dataclass(frozen=True, slots=True)
class PortCounters:
    """A switch's answer to `OpenFlowShell.read_ports`: body of an OFPMP_PORT_STATS reply."""

    dpid: int
    body: bytes


ShellEvent = Event | ModeSwitched | SwitchRefused | PortCounters
