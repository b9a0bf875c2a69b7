"""Packets that were dropped, by hop: where they must be, all of them, printed with units and kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli.specs import load_spec
from experiments.results.drops import HOPS, all_drops
from experiments.results.run_record import run_body
from experiments.results.tables import tables, tables_of
from experiments.spec.spec import Spec
from simulation.drops import DropsError, drops_by_hop
from simulation.experiment import simulate_document, simulate_spec
from topologies.fabric_spec import FabricSpec
from topologies.links import Link
from workloads.description import LongFlows

LEAF_SPINE = ["host to leaf", "leaf to spine", "spine to leaf", "leaf to host"]


def crowded(name: str, link: Link, access: Link) -> Spec:
    """Return `small` with three long flows and small buffers somewhere."""
    spec = load_spec("small", (name,)).spec
    workload = replace(spec.workload, long_flows=LongFlows(3))
    return replace(spec, fabric=replace(spec.fabric, link=link, access=access), workload=workload)


def dropped(spec: Spec) -> dict[str, int]:
    """Return the hops with drops, having compared what the document says of the scheme and of its runs."""
    document, runs = simulate_document(spec)
    (entry,) = document["schemes"].values()
    assert entry["drops"] == all_drops(run.drops for run in runs)
    assert [run["drops"] for run in document["runs"]] == [run.drops for run in runs]
    assert list(entry["drops"]) == LEAF_SPINE
    return {hop: packets for hop, packets in entry["drops"].items() if packets}


def test_packets_are_dropped_where_a_faster_port_meets_a_slower_one() -> None:
    wide, narrow = Link(15, 2000), Link(5, 20)
    assert set(dropped(crowded("ecmp", narrow, wide))) == {"leaf to spine"}
    # links between switches are the faster ones: a host's own port is the narrow one, and a crowd's last port
    slow_hosts = dropped(crowded("rps", Link(50, 2000), Link(5, 20)))
    assert "host to leaf" in slow_hosts
    assert not {"leaf to spine", "spine to leaf"} & set(slow_hosts)


def test_the_table_names_hops_and_the_sum(tmp_path: Path) -> None:
    result = simulate_spec(crowded("ecmp", Link(5, 20), Link(15, 2000)), "text", tmp_path)
    console = Console(width=150)
    with console.capture() as captured:
        console.print(tables(result.document))
    text = captured.get()
    assert "Packets dropped by hop" in text
    total = sum(result.document["schemes"]["ecmp"]["drops"].values())
    row = next(line for line in text[text.index("Packets dropped") :].splitlines() if "ecmp" in line)
    assert row.split() == ["ecmp", "0", str(total), "0", "0", str(total)]
    assert "Packets dropped by hop" in (result.directory / "tables.txt").read_text(encoding="utf-8")


def test_a_fat_tree_has_the_hops_between_aggregation_and_cores() -> None:
    fabric = FabricSpec("fat-tree", k=4, link=Link(5), access=Link(15))
    _, (run,) = simulate_document(replace(load_spec("small", ("rps",)).spec, fabric=fabric))
    assert run.drops is not None
    assert tuple(run.drops) == HOPS
    assert run_body(run, 1, 0.0)["measures"]["drops"] == dict(run.drops)


def test_a_result_of_a_lab_has_no_such_table() -> None:
    document, _ = simulate_document(load_spec("small", ("ecmp",)).spec)
    titles = [str(table.title) for table in tables_of(document)]
    assert any("dropped" in title for title in titles)
    entries: dict[str, Any] = {name: entry | {"drops": None} for name, entry in document["schemes"].items()}
    of_lab = [str(table.title) for table in tables_of(document | {"schemes": entries})]
    assert not any("dropped" in title for title in of_lab)
    assert all_drops([None, None]) is None


DROPS = st.dictionaries(st.sampled_from(HOPS), st.integers(0, 10**9))


@given(st.lists(st.none() | DROPS))
def test_drops_of_runs_add_up_in_the_order_of_the_way(runs: list[dict[str, int] | None]) -> None:
    total = all_drops(runs)
    simulated = [drops for drops in runs if drops is not None]
    if total is None:
        assert not simulated
        return
    assert sum(total.values()) == sum(sum(drops.values()) for drops in simulated)
    assert [hop for hop in HOPS if hop in total] == list(total)


def test_drops_that_do_not_add_up_are_an_error() -> None:
    link: Any = {"tier": "leaf to spine", "dropped": 3}
    assert drops_by_hop([link, link], {"packets_dropped": 6}) == {"leaf to spine": 6}
    with pytest.raises(DropsError, match="7 packets were dropped, 6 at ports"):
        drops_by_hop([link, link], {"packets_dropped": 7})
