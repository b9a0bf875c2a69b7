"""CAPTON's Eq. 1-3 and the pseudocode of its scheduler (Fig. 6), as printed (IEEE Access 2022).

The product's scheduler is native (`controller.capton.scheduler`): it takes shares below a whole link, ageing and more
tiers, and computes only what an event changes. This is Fig. 6 line by line, from nothing; the tests hold one against
the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Link:
    """Rates in bit/s."""

    capacity: float
    in_use: float = 0.0


@dataclass(slots=True)
class Flow:
    """*left* in bits, *rate* in bit/s. Hosts' links are by name of the host, racks' (core) by name of the rack."""

    source: str
    destination: str
    source_rack: str
    destination_rack: str
    left: float
    granted: bool = False
    rate: float = 0.0


@dataclass(slots=True)
class Links:
    """Access and core links, each way; the redundant ones of a rack are one virtual link."""

    up: Mapping[str, Link]
    down: Mapping[str, Link]
    core_up: Mapping[str, Link] = field(default_factory=dict)
    core_down: Mapping[str, Link] = field(default_factory=dict)


def left(flow: Flow, since_s: float) -> float:
    """Return Eq. 1: what is left of a flow after *since_s* seconds at its rate, bits.

    The print says f.size, and sorts by f.left.
    """
    return flow.left - flow.rate * since_s


def end_s(flow: Flow) -> float:
    """Return Eq. 2: f.end = f.left / f.rate, seconds from now."""
    return flow.left / flow.rate


def next_run_s(now_s: float, flows: Iterable[Flow]) -> float | None:
    """Return Eq. 3: T_(i+1) = T_cur + min f.end, of the flows that send; None: none does."""
    ends = [end_s(flow) for flow in flows if flow.granted]
    return now_s + min(ends) if ends else None


def schedule(flows: list[Flow], links: Links, hosts: int) -> list[Flow]:
    """Grant as in Fig. 6, in increasing order of what is left; a host sends and receives one flow at a time.

    A flow's rate is that of the lesser of its access links, whole; a flow between racks needs as much free on both
    core links. Returns the flows in their order. Sets what each has been granted, and the links' use.
    """
    for flow in flows:
        flow.granted, flow.rate = False, 0.0
    for side in (links.up, links.down, links.core_up, links.core_down):
        for link in side.values():
            link.in_use = 0.0
    ordered = sorted(flows, key=lambda flow: flow.left)
    granted = 0
    for flow in ordered:
        if granted == hosts:
            break
        up, down = links.up[flow.source], links.down[flow.destination]
        if up.in_use or down.in_use:
            continue
        rate = min(up.capacity, down.capacity)
        if flow.source_rack != flow.destination_rack:
            core = (links.core_up[flow.source_rack], links.core_down[flow.destination_rack])
            if any(link.in_use + rate > link.capacity for link in core):
                continue
            for link in core:
                link.in_use += rate
        flow.granted, flow.rate = True, rate
        up.in_use = down.in_use = rate
        granted += 1
    return ordered
