"""What happens on one switch's connection, as plain data: what a session gives its shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.fabric.switch_data import MeterReading, Port
from controller.openflow.errors import SwitchError
from controller.openflow.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Ready:
    """The handshake is done: the switch can be given its state."""

    dpid: int
    ports: tuple[Port, ...]
    inventory: Inventory


@dataclass(frozen=True, slots=True)
class PortStatus:
    """A port is new, has changed, or is gone (then it is down)."""

    port: Port


@dataclass(frozen=True, slots=True)
class PacketIn:
    """An entry with this cookie (without its generation) sent a frame up."""

    in_port: int
    cookie: int
    data: bytes


@dataclass(frozen=True, slots=True)
class MeterCount:
    """What each of the switch's meters has counted."""

    readings: Mapping[int, MeterReading]


@dataclass(frozen=True, slots=True)
class PortsCounted:
    """What all ports have counted: the body of an OFPMP_PORT_STATS reply, for `controller.live` to read."""

    body: bytes


@dataclass(frozen=True, slots=True)
class UpdateDone:
    """The switch has worked off an update; ``errors`` is empty if it took all of it."""

    ticket: int
    errors: tuple[SwitchError, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """An error that belongs to no update (a packet-out, a meter read ...)."""

    error: SwitchError


SessionEvent = Ready | PortStatus | PacketIn | MeterCount | PortsCounted | UpdateDone | Refused
