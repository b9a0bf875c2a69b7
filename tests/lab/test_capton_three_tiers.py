"""CAPTON on a fat tree of real switches: a link that goes down takes its capacity with it; none is promised twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from experiments.run.deployment import Deployment
from tests.lab.test_capton_on_switches import ANNOUNCED
from tests.lab.test_schemes_on_switches import deployment, programs, said, start
from tests.waiting import eventually

RATE: Final = 10_000_000
PORT: Final = 7100
ENDLESS: Final = 1 << 33
EDGES, PODS, HOSTS = 8, 4, 16


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    shape = {
        "topology": "fat-tree",
        "k": 4,
        "link": {"rate_mbps": RATE / 1e6, "buffer_packets": 256},
        "access": {"rate_mbps": RATE / 1e6},
    }
    with deployment(shape, "capton") as running:
        eventually(lambda: len(running.client.capton()["links"]) == 2 * (EDGES + PODS + HOSTS))
        yield running


def links(lab: Deployment) -> dict[str, dict[str, Any]]:
    """Return all virtual links by name; assert that none of them is promised twice."""
    found = {link["name"]: link for link in lab.client.capton()["links"]}
    for link in found.values():
        assert link["granted_bps"] <= link["capacity_bps"], link
    return found


def granted(lab: Deployment, *names: str) -> list[int]:
    """Return what is granted of some links (bit/s), at one moment."""
    found = links(lab)
    return [found[name]["granted_bps"] for name in names]


def test_a_link_that_goes_down_lowers_its_edges_capacity_at_once_and_flows_wait(lab: Deployment) -> None:
    places = lab.spec.fabric.hosts()
    first = [place for place in places if place.leaf == 1]
    second = [place for place in places if place.leaf == 2]
    targets = [place for place in places if place.leaf in (5, 6)]  # another pod
    root = str(programs.__file__).rsplit("/tests/", 1)[0]
    for target in targets:
        said(start(lab, target.name, programs.DISCARD, PORT), "listening")
    for source, target in zip(first + second, targets, strict=True):
        said(
            start(lab, source.name, ANNOUNCED, target.overlay, PORT, source.overlay, ENDLESS, root),
            "connected",
        )
    eventually(lambda: lab.client.capton()["totals"]["granted_bps"] == 4 * RATE)
    assert links(lab)["e1 up"]["capacity_bps"] == 2 * RATE

    lab.lab.set_link("e1-a1", up=False)
    eventually(lambda: links(lab)["e1 up"]["capacity_bps"] == RATE)

    def states() -> list[str]:
        flows = lab.client.capton()["flows"]
        return sorted(flow["state"] for flow in flows if flow["source"] in ("h1", "h2"))

    eventually(lambda: states() == ["granted", "waiting"])
    # a sender that a busy machine keeps from sending for a second gives its grant back for a moment
    eventually(lambda: granted(lab, "e1 up", "e2 up", "pod 1 up") == [RATE, 2 * RATE, 3 * RATE])
    assert links(lab)["pod 1 up"]["capacity_bps"] == 4 * RATE
    reported = [event for event in lab.client.events()[0] if event["kind"] == "capton-capacity"]
    assert ("e1 up", RATE) in [(event["link"], event["capacity_bps"]) for event in reported]

    lab.lab.set_link("e1-a1", up=True)
    eventually(lambda: granted(lab, "e1 up") == [2 * RATE])
    lab.lab.set_link("a1-c1", up=False)  # two of three paths lead through a2
    eventually(lambda: links(lab)["e2 up"]["capacity_bps"] == 1.5 * RATE)
    assert links(lab)["pod 1 up"]["capacity_bps"] == 3 * RATE
    eventually(lambda: granted(lab, "pod 1 up") == [2 * RATE])
