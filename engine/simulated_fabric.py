"""The fabric of a simulated run, and what its links carry, as a controller shows those of switches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from controller.api.answers import FabricView
from controller.api.answers_live import LinkLoadView, LinksView, LoadView
from controller.api.views import fabric_view
from controller.plane.naming import FabricNames
from experiments.spec.spec import Spec
from simulation.link_samples import LinkSample
from simulation.seen_fabric import seen_fabric

_KBPS: Final = 1000
"""kbit/s of 1 Mbit/s."""


@dataclass(frozen=True, slots=True)
class SimulatedLink:
    """A link with its rate in kbit/s; None: it has none."""

    name: str
    access: bool
    up: bool
    rate_kbps: float | None


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedFabricView:
    """A spec's fabric; links: in the order of `LinkSample`."""

    view: FabricView
    links: tuple[SimulatedLink, ...]


def simulated_fabric_view(spec: Spec) -> SimulatedFabricView:
    """Return the fabric of a spec. Hosts have the addresses that they have in a lab."""
    fabric = spec.fabric
    places = {place.name: place for place in fabric.hosts()}
    snapshot = seen_fabric(fabric, clock=1.0).snapshot
    hosts = tuple(
        replace(host, ipv4=places[host.name].underlay, mac=places[host.name].mac) for host in snapshot.hosts
    )
    snapshot = replace(snapshot, hosts=hosts)
    names = {link.name: link for link in FabricNames(snapshot).links}

    def rate_kbps(name: str) -> float | None:
        rate_mbps = fabric.link_named(name).rate_mbps
        return None if rate_mbps is None else rate_mbps * _KBPS

    links = [
        SimulatedLink(name, link.access, link.up, rate_kbps(name))
        for name, link in ((name, names[name]) for name in fabric.link_names())
    ]
    rates = {link.name: link.rate_kbps for link in links if link.rate_kbps is not None}
    overlay = {place.underlay: [place.overlay, place.overlay6] for place in places.values()}
    return SimulatedFabricView(fabric_view(snapshot, rates, overlay), tuple(links))


def links_view(fabric: SimulatedFabricView, sample: LinkSample, at: float) -> LinksView | None:
    """Return what links carried by a sample that came at *at*, Unix seconds; None: it is of another fabric."""
    if any(len(of) != 2 * len(fabric.links) for of in sample.counts):
        return None

    def load(place: int, rate_kbps: float | None) -> LoadView:
        octets, packets, dropped, queued = (of[place] for of in sample.counts)
        bits_per_s = octets * 8 / sample.interval_s
        return {
            "bits_per_s": round(bits_per_s, 1),
            "packets_per_s": round(packets / sample.interval_s, 2),
            "share": round(bits_per_s / (rate_kbps * _KBPS), 4) if rate_kbps else None,
            "queued_packets": queued,
            "dropped_per_s": round(dropped / sample.interval_s, 2),
            "queues": [],
        }

    loads: list[LinkLoadView] = [
        {
            "name": link.name,
            "kind": "access" if link.access else "fabric",
            "up": link.up,
            "rate_kbps": link.rate_kbps,
            "ab": load(2 * index, link.rate_kbps),
            "ba": load(2 * index + 1, link.rate_kbps),
        }
        for index, link in enumerate(fabric.links)
    ]
    return {"at": at, "interval_s": sample.interval_s, "links": loads}
