"""What one switch's state depends on, as plain data: its hosts, those of others, and the ways to their leaves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LocalHost:
    """A host on a port of this switch."""

    ipv4: str
    mac: str
    port: int
    agent: bool


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """A host of the leaf with number ``leaf``."""

    ipv4: str
    mac: str
    leaf: int
    agent: bool


@dataclass(frozen=True, slots=True)
class Towards:
    """Next hops to one leaf: ports, in order. ``stamp``: what to write because paths turn here, or None.

    ``labels``: the stamps that paths from here may get further up, each with the ports that lead there.
    """

    leaf: int
    ports: tuple[int, ...]
    stamp: int | None = None
    labels: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchView:
    """All that one switch's state depends on, besides scheme and mode.

    ``guarded``: ports from which only packets for own hosts are taken: those of a leaf at which no host is known,
    whether they are known to lead to a switch or not, unless the leaf has to carry others' packets. ``closed``: the
    switch has no hosts and is on no path, so that it passes nothing on. ``ports``: all of its ports.
    """

    dpid: int
    leaf: bool
    local: tuple[LocalHost, ...] = ()
    remote: tuple[RemoteHost, ...] = ()
    towards: tuple[Towards, ...] = ()
    guarded: tuple[int, ...] = ()
    closed: bool = False
    ports: tuple[int, ...] = ()

    @property
    def chooses(self) -> bool:
        """Return whether there is a choice of ways for anything."""
        return any(len(way.ports) > 1 for way in self.towards)
