"""How people call switches, links and roles: from a snapshot of the fabric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from controller.fabric.graph import PortRef, link_between
from controller.plane.snapshot import FabricSnapshot, SwitchInfo

Role = Literal["leaf", "spine", "aggregation", "core"]
_LAST: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class NamedLink:
    """A link with its name. ``a`` is the lower end (None: a host); ``access``: it leads to a host."""

    name: str
    a: PortRef | None
    b: PortRef
    access: bool
    up: bool
    speed_kbps: int


def switch_names(switches: Iterable[SwitchInfo]) -> dict[int, str]:
    """Return the name of each switch by dpid: its bridge's; the dpid in hex where that is not known, or is another's,
    too.
    """
    names = {switch.dpid: switch.name for switch in switches}
    counts = Counter(names.values())
    return {dpid: name if name and counts[name] == 1 else f"{dpid:#x}" for dpid, name in names.items()}


def _former_names(snapshot: FabricSnapshot) -> dict[int, str]:
    """Return the names of switches that are forgotten, by dpid; not those that another switch has or had, too."""
    known = {switch.dpid for switch in snapshot.switches}
    former = {dpid: name for dpid, name in snapshot.forgotten if dpid not in known}
    counts = Counter([*former.values(), *(switch.name for switch in snapshot.switches)])
    return {dpid: name for dpid, name in former.items() if name and counts[name] == 1}


class FabricNames:
    """Names in one snapshot.

    A link is called by its ends, the lower tier first: ``l1-s1``, ``h1-l1``. Of links between the same two switches
    all but the first have the number of the lower end's port too: ``l1-s1:7``.
    """

    def __init__(self, snapshot: FabricSnapshot) -> None:
        self._names = switch_names(snapshot.switches)
        self._former = _former_names(snapshot)
        self.dpids = frozenset(self._names)
        self._tiers = {switch.dpid: switch.tier for switch in snapshot.switches}
        self._top = max((switch.tier for switch in snapshot.switches if switch.tier is not None), default=0)
        self.connected = frozenset(switch.dpid for switch in snapshot.switches if switch.connected)
        self._links: dict[PortRef, NamedLink] = {}
        self.links: list[NamedLink] = []
        self._by_name: dict[str, NamedLink] = {}
        self._turned: dict[str, NamedLink] = {}
        """By name, the upper end first."""
        seen: Counter[str] = Counter()
        for link in snapshot.links:
            a, b = sorted(link_between(link.a, link.b), key=self._rank)
            lower, upper = self.switch(a.dpid), self.switch(b.dpid)
            seen[f"{lower}-{upper}"] += 1
            number = f":{a.port}" if seen[f"{lower}-{upper}"] > 1 else ""
            named = NamedLink(f"{lower}-{upper}{number}", a, b, False, link.up, link.speed_kbps)
            self._keep(named, f"{upper}-{lower}{number}")
        for host in snapshot.hosts:
            if host.place is not None:
                lower, upper = host.name or host.ipv4, self.switch(host.place.dpid)
                up = host.place.dpid in self.connected
                self._keep(NamedLink(f"{lower}-{upper}", None, host.place, True, up, 0), f"{upper}-{lower}")

    @classmethod
    def empty(cls) -> FabricNames:
        """Return names of an empty fabric."""
        return cls(FabricSnapshot((), (), (), (), "", False))

    def _keep(self, link: NamedLink, turned: str) -> None:
        self.links.append(link)
        self._by_name.setdefault(link.name, link)
        self._turned.setdefault(turned, link)
        for end in (link.a, link.b):
            if end is not None:
                self._links.setdefault(end, link)

    def _rank(self, end: PortRef) -> tuple[int, str, PortRef]:
        tier = self._tiers.get(end.dpid)
        return (_LAST if tier is None else tier, self.switch(end.dpid), end)

    def switch(self, dpid: int) -> str:
        """Return the name of a switch, or its last one where it is forgotten; its dpid in hex where it has none of its
        own.
        """
        return self._names.get(dpid) or self._former.get(dpid, f"{dpid:#x}")

    def link(self, end: PortRef) -> NamedLink | None:
        """Return the link at a port."""
        return self._links.get(end)

    def between(self, a: PortRef, b: PortRef) -> str:
        """Return the name of the link between two ports, without its number where there is no such link any more."""
        link = self._links.get(a)
        if link is not None and {link.a, link.b} == {a, b}:
            return link.name
        lower, upper = sorted((a, b), key=self._rank)
        return f"{self.switch(lower.dpid)}-{self.switch(upper.dpid)}"

    def by_name(self, name: str) -> NamedLink | None:
        """Return a link by its name, whichever end is said first."""
        return self._by_name.get(name) or self._turned.get(name)

    def switches(self) -> list[str]:
        """Return the names of all switches."""
        return list(self._names.values())

    def dpid(self, name: str) -> int | None:
        """Return the datapath id of the switch of that name, or None."""
        return next((dpid for dpid, known in self._names.items() if known == name), None)

    def role(self, dpid: int) -> Role | None:
        """Return what a switch is by its tier: leaf, spine, ...; None while that is not known."""
        tier = self._tiers.get(dpid)
        if tier is None:
            return None
        if tier == 0:
            return "leaf"
        if self._top == 1:
            return "spine"
        return "core" if tier == self._top else "aggregation"
