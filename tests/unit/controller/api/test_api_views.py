"""How the fabric looks in the API, while it changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from controller.api import views
from controller.fabric.graph import PortRef
from controller.lifecycle import RunningController
from controller.plane.naming import FabricNames
from controller.plane.snapshot import FabricSnapshot, HostInfo, LinkInfo, PathInfo, SwitchInfo
from protocol.control import ActiveFlows, FlowEntry
from tests.unit.api_world import api_world
from tests.waiting import eventually

SPINES = 32


def fabric() -> FabricSnapshot:
    """Build leaves 1 and 2, a host at port 99 of each, under 32 spines."""
    switches = [SwitchInfo(leaf, f"l{leaf}", True, 0, leaf) for leaf in (1, 2)]
    switches += [SwitchInfo(100 + spine, f"s{spine}", True, 1, 10 + spine) for spine in range(1, SPINES + 1)]
    links = [
        LinkInfo(PortRef(leaf, spine), PortRef(100 + spine, leaf), True, 0)
        for leaf in (1, 2)
        for spine in range(1, SPINES + 1)
    ]
    hosts = [HostInfo(f"h{leaf}", f"10.128.{leaf}.1", "", True, PortRef(leaf, 99)) for leaf in (1, 2)]
    return FabricSnapshot(tuple(switches), tuple(links), tuple(hosts), (), "", True)


def paths() -> tuple[PathInfo, ...]:
    """Return the paths from the first host to the second one."""
    return tuple(PathInfo((1, 100 + spine, 2), (spine, 2, 99), 10 + spine) for spine in range(1, SPINES + 1))


def test_what_is_gone_since_the_paths_were_found_is_in_no_path() -> None:
    seen = fabric()
    names = FabricNames(seen)
    assert len(views.path_views(paths(), seen, "h1", "10.128.2.1")) == SPINES
    unwired = replace(seen, links=seen.links[1:])  # that of the first leaf and the first spine
    shown = views.path_views(paths(), unwired, "h1", "h2")
    assert [path["stamp"] for path in shown] == list(range(12, 11 + SPINES))
    assert views.ways_of(shown[0], names) == [("l1-s2", "ab"), ("l2-s2", "ba"), ("h2-l2", "ba")]
    for hosts in (seen.hosts[:1], (seen.hosts[0], replace(seen.hosts[1], place=None))):
        assert views.path_views(paths(), replace(seen, hosts=hosts), "h1", "h2") == []


def test_a_flow_with_many_paths_costs_a_few_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a call in the thread that turns modes: there was one a path."""
    taken = list[FabricSnapshot]()

    def snapshot(running: RunningController) -> FabricSnapshot:
        taken.append(fabric())
        return taken[-1]

    monkeypatch.setattr(RunningController, "snapshot", snapshot)
    monkeypatch.setattr(RunningController, "paths", lambda running, source, target: paths())
    entry = FlowEntry("sender", 6, "10.128.1.1", 20000, "10.128.2.1", 7000, "short", 10, 14000, 5.0, 5.5)
    with api_world(tmp_path) as world:
        world.get("/flows")
        world.running.agents.active_flows.notify("h1", ActiveFlows(6.0, [entry]))
        (flow,) = eventually(lambda: world.get("/flows")["flows"], "the flow")
        before = len(taken)
        shown = world.get(f"/flows/{flow['id']}")
        assert len(shown["paths"]) == SPINES
        assert shown["paths"][0]["links"] == ["h1-l1", "l1-s1", "l2-s1", "h2-l2"]
        assert len(taken) - before < 8
