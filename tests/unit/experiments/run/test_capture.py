"""What a recording of a run on switches says of the lab's links."""

from __future__ import annotations

from types import SimpleNamespace

from experiments.run import capture
from topologies.links import Link


def test_the_room_of_a_port_is_that_of_all_its_queues() -> None:
    """It decides which packets that were not seen any more were dropped, and which may still wait."""
    ends = [SimpleNamespace(name=f"{node}-eth1", node=SimpleNamespace(name=node)) for node in ("l1", "s1")]
    link = SimpleNamespace(name="l1-s1", intf1=ends[0], intf2=ends[1])
    ports = {"l1-eth1": (Link(5, 20), 8), "s1-eth1": (Link(10, 100), 1)}
    lab = SimpleNamespace(net=SimpleNamespace(links=[link]), port=ports.__getitem__, has_netem=True)
    links, rows = capture._links(lab)  # type: ignore[arg-type]
    ways = [(way.source, way.bps, way.room) for way in links]
    assert ways == [("l1", 5_000_000, 160), ("s1", 10_000_000, 100)]
    assert rows == {"s1": {"s1-eth1": 0}, "l1": {"l1-eth1": 1}}
