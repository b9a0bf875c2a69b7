"""What goes into the control plane and what comes out of it, as plain data.

The OpenFlow shell turns a switch's messages into `controller.fabric.switch_data` and the arguments of `ControlPlane`'s
methods, and turns the `Effects` that these return into messages. Times are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.fabric.events import HostConflict, HostLinkChanged, HostSeen, LinkDown, LinkUp
from controller.fabric.switch_data import PacketOut
from controller.openflow.wanted import Difference
from controller.schemes.scheme import Mode


@dataclass(frozen=True, slots=True)
class SwitchUp:
    """A switch has connected."""

    at: float
    dpid: int
    taken_over: bool
    """It held a state (of a controller before this one, or before a lost connection)."""


@dataclass(frozen=True, slots=True)
class SwitchDown:
    """The connection of a switch is lost; it may forward nevertheless."""

    at: float
    dpid: int


@dataclass(frozen=True, slots=True)
class SwitchForgotten:
    """A switch that has been away, and has no link, is known no more (`controller.plane.forgetting`)."""

    at: float
    dpid: int


@dataclass(frozen=True, slots=True)
class SwitchTurnedAway:
    """A switch may not connect; those that are known are served as before."""

    at: float
    dpid: int
    reason: str


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """A leaf is in another mode. ``cause``: what made it so, as `controller.modes.monitor` says."""

    at: float
    leaf: int
    mode: Mode
    cause: str


@dataclass(frozen=True, slots=True)
class PathsChanged:
    """Which paths from ``leaf`` (a dpid) are alive: stamps, ascending, by dpid of the destination leaf.

    ``by_class``: those that a class ("short", "long", "control") is to keep to; no entry: all of them.
    """

    at: float
    leaf: int
    paths: Mapping[int, tuple[int, ...]]
    by_class: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """Which paths (stamps, ascending) carry short flows from now on, and which long ones.

    ``share``: of all paths, how much the loads ask for as low-latency paths (`controller.modes.partition`).
    """

    at: float
    low_latency: tuple[int, ...]
    throughput: tuple[int, ...]
    share: float


@dataclass(frozen=True, slots=True)
class SchemeChanged:
    """A scheme of another name is in force."""

    at: float
    scheme: str


@dataclass(frozen=True, slots=True)
class StateSent:
    """A switch was sent the whole wanted state (not just a difference)."""

    at: float
    dpid: int


Event = (
    SwitchUp
    | SwitchDown
    | SwitchForgotten
    | SwitchTurnedAway
    | LinkUp
    | LinkDown
    | HostSeen
    | HostLinkChanged
    | HostConflict
    | ModeChanged
    | PathsChanged
    | PartitionChanged
    | SchemeChanged
    | StateSent
)


@dataclass(frozen=True, slots=True)
class Effects:
    """What a call of the control plane wants done.

    ``updates``: per dpid, one atomic bundle each, in this order of switches (upper tiers first, so that a path's far
    end exists before it is used). A dpid in ``resync`` gets a whole state: under a fresh cookie generation add or
    modify all of it, then delete every flow of another generation and every group and meter that the update does not
    name. An update of a switch that has had no resync yet adds single entries (LLDP, ARP) and must leave all else as
    it is. ``packet_outs`` go out after the updates. The connection of a switch in ``turned_away`` is to be closed; the
    text says why.
    """

    updates: Mapping[int, Difference] = field(default_factory=dict)
    resync: frozenset[int] = frozenset()
    packet_outs: tuple[PacketOut, ...] = ()
    read_meters: tuple[int, ...] = ()
    """Leaves (dpids) whose meters to read; answer by `ControlPlane.meter_sample`."""
    events: tuple[Event, ...] = ()
    turned_away: Mapping[int, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.updates or self.packet_outs or self.read_meters or self.events or self.turned_away)
