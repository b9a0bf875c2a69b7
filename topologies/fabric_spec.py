"""The fabric that an experiment asks for, as plain data."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from msgspec import Meta

from capstan_client.errors import CapstanError
from plain.bounds import beyond, bounded_fields
from topologies.addressing import MAX_HOSTS_PER_LEAF, MAX_LEAVES, HostPlace, link_name
from topologies.layout import Layout, fat_tree, leaf_spine
from topologies.links import Link, LinkError

if TYPE_CHECKING:
    from mininet.topo import Topo

Topology = Literal["leaf-spine", "fat-tree"]


class FabricSpecError(CapstanError, ValueError):
    """A fabric's description is wrong; ``where`` is the dotted name of the field, ``what`` is wrong with it."""

    def __init__(self, field_name: str, problem: str) -> None:
        super().__init__(problem, where=field_name)


@dataclass(frozen=True)
class FabricSpec:
    """A fabric of switches, links and hosts. Raises FabricSpecError where it cannot be built."""

    topology: Topology = "leaf-spine"
    leaves: Annotated[int, Meta(ge=1, le=MAX_LEAVES, description="leaf switches")] = 2
    spines: Annotated[
        int, Meta(ge=1, le=255, description="spine switches: the number of paths between two leaves")
    ] = 2
    hosts_per_leaf: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_HOSTS_PER_LEAF)] | None,
        Meta(description="hosts below each leaf; null: 2, or k/2 in a fat tree"),
    ] = None
    k: Annotated[int, Meta(ge=2, le=22, description="ports per switch of a fat tree, even")] = 4
    link: Annotated[Link, Meta(description="links between switches")] = field(default_factory=Link)
    access: Annotated[Link, Meta(description="links between hosts and leaves")] = field(default_factory=Link)
    overrides: Annotated[
        Mapping[str, Link], Meta(description="single links that differ, by name like l1-s3")
    ] = field(default_factory=dict)
    down: Annotated[tuple[str, ...], Meta(description="names of links that start out taken down")] = ()
    mtu: Annotated[int, Meta(ge=1280, le=9000, description="bytes, of all interfaces")] = 1500

    def __post_init__(self) -> None:
        if self.topology not in get_args(Topology):
            raise FabricSpecError(
                "topology", f"{self.topology!r} is not known; give {' or '.join(get_args(Topology))}"
            )
        for name, bounds in bounded_fields(FabricSpec).items():
            _check_count(name, getattr(self, name), bounds)
        if self.topology == "fat-tree" and self.k % 2:
            raise FabricSpecError("k", f"must be even, not {self.k}")
        overrides: dict[str, Link] = {}
        for given, link in self.overrides.items():
            name = canonical_name(given)
            if name in overrides:
                raise FabricSpecError(f"overrides.{given}", f"is {name}, which is there already")
            overrides[name] = link
        self._check_buffers(overrides)
        down = tuple(canonical_name(name) for name in self.down)
        object.__setattr__(self, "overrides", overrides)
        object.__setattr__(self, "down", down)
        if overrides or down:
            known = self.link_names()
            for where, names in (("overrides", overrides), ("down", down)):
                for name in names:
                    if name not in known:
                        raise FabricSpecError(f"{where}.{name}", unknown_link(name, known))

    def _check_buffers(self, overrides: Mapping[str, Link]) -> None:
        for name, link in {"link": self.link, "access": self.access, **overrides}.items():
            if link.buffer_bytes is not None and link.buffer_bytes < self.mtu:
                where = name if name in ("link", "access") else f"overrides.{name}"
                raise FabricSpecError(
                    f"{where}.buffer_bytes",
                    f"{link.buffer_bytes} B hold no full packet ({self.mtu} B): give more",
                )

    @property
    def hosts_on_leaf(self) -> int:
        """Return hosts under each leaf: as given, else 2 (leaf-spine) or k/2 (fat tree)."""
        if self.hosts_per_leaf is not None:
            return self.hosts_per_leaf
        return 2 if self.topology == "leaf-spine" else self.k // 2

    def layout(self) -> Layout:
        """Return names of its switches, hosts and links."""
        if self.topology == "leaf-spine":
            return leaf_spine(self.leaves, self.spines, self.hosts_on_leaf)
        return fat_tree(self.k, self.hosts_on_leaf)

    def topo(self) -> Topo:
        """Return the fabric as a Mininet topology."""
        # Here, for a spec is also read where no Mininet is installed.
        from topologies.fat_tree import FatTree
        from topologies.leaf_spine import LeafSpine

        if self.topology == "leaf-spine":
            return LeafSpine(
                self.leaves, self.spines, self.hosts_on_leaf, self.link, self.access, self.overrides
            )
        return FatTree(self.k, self.hosts_on_leaf, self.link, self.access, self.overrides)

    def link_names(self) -> list[str]:
        """Return names of all links, in natural order."""
        return self.layout().link_names()

    def link_named(self, name: str) -> Link:
        """Return the link of that name: its own override, or what all of its kind are."""
        return self.overrides.get(name, self.access if name.startswith("h") else self.link)

    def hosts(self) -> list[HostPlace]:
        """Return where the hosts sit, in order."""
        return list(self.layout().hosts)

    @property
    def slowest_link_mbps(self) -> float | None:
        """Return the rate of the slowest link between switches, Mbit/s; None if none is shaped."""
        rates = [link.rate_mbps for name, link in self.overrides.items() if not name.startswith("h")]
        return min((rate for rate in [self.link.rate_mbps, *rates] if rate is not None), default=None)

    @property
    def lab_problem(self) -> str | None:
        """Return what of its links no lab has, where, and what to do; None: nothing."""
        links = {"link": self.link, "access": self.access}
        links |= {f"overrides.{name}": link for name, link in self.overrides.items()}
        problems = (f"fabric.{name}: {link.lab_problem}" for name, link in links.items() if link.lab_problem)
        return next(problems, None)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FabricSpec:
        """Return the spec in plain data (YAML, JSON). An override may give just the fields that differ."""
        if not isinstance(data, Mapping):
            raise FabricSpecError("fabric", f"must be a mapping, not {data!r}")
        known = [entry.name for entry in fields(cls)]
        for key in data:
            if key not in known:
                raise FabricSpecError(str(key), f"is not a field of a fabric{_did_you_mean(str(key), known)}")
        values = dict(data)
        for name in ("link", "access"):
            values[name] = _link(name, values.get(name, {}))
        overrides = values.get("overrides") or {}
        if not isinstance(overrides, Mapping):
            raise FabricSpecError("overrides", f"must map names of links to what differs, not {overrides!r}")
        values["overrides"] = {
            name: _link(
                f"overrides.{name}",
                part,
                values["access" if "h" in (name[:1], _after_dash(name)) else "link"],
            )
            for name, part in ((str(key), part) for key, part in overrides.items())
        }
        down = values.get("down") or ()
        if isinstance(down, str) or not all(isinstance(name, str) for name in down):
            raise FabricSpecError("down", f"must be a list of names of links, not {down!r}")
        values["down"] = tuple(down)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that from_dict() takes back."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values["link"] = self.link.to_dict()
        values["access"] = self.access.to_dict()
        values["overrides"] = {name: link.to_dict() for name, link in self.overrides.items()}
        values["down"] = list(self.down)
        return values


def unknown_link(name: str, known: list[str]) -> str:
    """Return what to say of a link's name that the fabric does not have."""
    return f"this fabric has no link {name!r}{_did_you_mean(name, known)}"


def _did_you_mean(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known[:12])}"


def canonical_name(name: str) -> str:
    """Return the name of a link as fabrics have it, whichever of its ends *name* has first."""
    end, dash, other = name.partition("-")
    return link_name(end, other) if dash and end and other else name


def _after_dash(name: str) -> str:
    return name.partition("-")[2][:1]


def _link(where: str, value: Any, base: Link | None = None) -> Link:
    if isinstance(value, Link):
        return value
    try:
        return Link.from_dict({} if value is None else value, base)
    except LinkError as error:
        raise FabricSpecError(where, str(error)) from None


def _check_count(name: str, value: object, bounds: Meta) -> None:
    if value is None and name == "hosts_per_leaf":
        return
    if not isinstance(value, int) or isinstance(value, bool) or beyond(bounds, value, ""):
        raise FabricSpecError(name, f"must be a whole number {bounds.ge}..{bounds.le}, not {value!r}")
