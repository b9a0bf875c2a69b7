"""Ports that are, or were last, a link's: each with the other end, and by switch."""

from __future__ import annotations

from collections.abc import Set

from controller.fabric.graph import Link, PortRef


class WiredPorts:
    """Pairs of ports; a port is in one of them at most."""

    def __init__(self) -> None:
        self._peers: dict[PortRef, PortRef] = {}
        self._numbers: dict[int, set[int]] = {}

    def __contains__(self, ref: PortRef) -> bool:
        return ref in self._peers

    def __getitem__(self, ref: PortRef) -> PortRef:
        return self._peers[ref]

    def get(self, ref: PortRef, default: PortRef | None = None) -> PortRef | None:
        """Return the other end of a port's link; *default* if it is no link's."""
        return self._peers.get(ref, default)

    def add(self, end: PortRef, other: PortRef) -> None:
        """Note that these are a link's ports; neither is another's."""
        if self._peers.get(end) != other:
            self._peers[end], self._peers[other] = other, end
            for ref in (end, other):
                self._numbers.setdefault(ref.dpid, set()).add(ref.port)

    def remove(self, ref: PortRef) -> None:
        """Note that a port, and the one at its other end, are no link's."""
        peer = self._peers.pop(ref, None)
        if peer is None:
            return
        del self._peers[peer]
        for end in (ref, peer):
            self._numbers[end.dpid].discard(end.port)
            if not self._numbers[end.dpid]:
                del self._numbers[end.dpid]

    def links(self) -> frozenset[Link]:
        """Return all pairs as links."""
        return frozenset(Link(a, b) for a, b in self._peers.items() if a < b)

    def switches(self) -> set[int]:
        """Return the switches that have such ports."""
        return set(self._numbers)

    def numbers(self, dpid: int) -> Set[int]:
        """Return the numbers of a switch's ports that are such."""
        return self._numbers.get(dpid, frozenset())

    def has_switch(self, dpid: int) -> bool:
        """Return whether a switch has such a port."""
        return dpid in self._numbers
