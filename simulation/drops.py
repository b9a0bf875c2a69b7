"""Packets that ports of a simulated fabric dropped, by the hop of their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import capstan_native

from capstan_client.errors import CapstanError
from experiments.results.drops import HOPS


class DropsError(CapstanError, ValueError):
    """Ports dropped other packets than the run lost: an error of the simulator."""


def drops_by_hop(links: Sequence[capstan_native.SimulatedLink], totals: Mapping[str, int]) -> dict[str, int]:
    """Return the packets that were dropped at each hop of a fabric: at hosts' own ports, from leaves up, and so on.

    Raises:
        DropsError: they are not all packets that were dropped.
    """
    present = {link["tier"] for link in links}
    drops: dict[str, int] = {hop: 0 for hop in HOPS if hop in present}
    for link in links:
        drops[link["tier"]] += link["dropped"]
    if sum(drops.values()) != totals["packets_dropped"]:
        raise DropsError(
            f"{totals['packets_dropped']} packets were dropped, {sum(drops.values())} at ports; "
            "this is an error of the simulator"
        )
    return drops
