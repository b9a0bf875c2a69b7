"""How many links a spec's fabric has, before anything has checked it or laid it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plain.bounds import beyond, bounded_fields
from topologies.fabric_spec import FabricSpec
from topologies.layout import number_of_links

_PLAIN: Final = FabricSpec()


def links_of(fabric: Any) -> int:
    """Return how many links a fabric has, as plain data that nothing has checked; 0: it cannot be."""
    given = fabric if isinstance(fabric, Mapping) else {}
    sizes: dict[str, int] = {}
    bounds = bounded_fields(FabricSpec)
    for name in ("leaves", "spines", "k", "hosts_per_leaf"):
        value = given.get(name)
        if value is None:
            value = getattr(_PLAIN, name)
        elif not isinstance(value, int) or isinstance(value, bool) or beyond(bounds[name], value, ""):
            return 0
        sizes[name] = value
    topology = given.get("topology", _PLAIN.topology)
    on_leaf = sizes["hosts_per_leaf"] or (sizes["k"] // 2 if topology == "fat-tree" else _PLAIN.hosts_on_leaf)
    return number_of_links(
        topology, leaves=sizes["leaves"], spines=sizes["spines"], k=sizes["k"], hosts_on_leaf=on_leaf
    )
