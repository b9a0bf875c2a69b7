"""What happens to links and hosts: plain data. Times are seconds of one monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controller.fabric.graph import PortRef


@dataclass(frozen=True, slots=True)
class LinkUp:
    """Both directions of a link are up, for the first time or again."""

    at: float
    a: PortRef
    b: PortRef


LinkDownCause = Literal["port down", "no LLDP", "rewired"]


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A link is down, or leads elsewhere now (``rewired``)."""

    at: float
    a: PortRef
    b: PortRef
    cause: LinkDownCause


@dataclass(frozen=True, slots=True)
class HostSeen:
    """A host's place is known, for the first time or anew. ``moved_from``: where it was, if it moved."""

    at: float
    ipv4: str
    mac: str
    place: PortRef
    moved_from: PortRef | None = None


@dataclass(frozen=True, slots=True)
class HostLinkChanged:
    """The switch's port at which a host is has gone down, or is up again."""

    at: float
    ipv4: str
    place: PortRef
    up: bool


@dataclass(frozen=True, slots=True)
class HostConflict:
    """A sender at ``place`` claims an address that belongs to another host; the claim is not believed."""

    at: float
    ipv4: str
    mac: str
    place: PortRef
    owner_mac: str
