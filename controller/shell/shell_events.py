"""What the OpenFlow shell says, besides what the control plane does."""

from __future__ import annotations

from dataclasses import dataclass

from controller.openflow.errors import SwitchError
from controller.plane.effects import Event
from controller.schemes.scheme import Mode


@dataclass(frozen=True, slots=True)
class ModeSwitched:
    """How long one mode change took: a trace of times in seconds on the shell's clock.

    ``noticed``: the packet-in or meter count that caused it was read; ``sent``: the change was handed to the socket;
    ``confirmed``: the switch's barrier reply was read (its datapath follows within milliseconds).
    """

    at: float
    leaf: int
    mode: Mode
    cause: str
    noticed: float
    sent: float
    confirmed: float


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
