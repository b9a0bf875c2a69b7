"""Links whose buffers are in bytes: the same as in packets of one size, refused where they cannot be, and said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import capstan_native
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli.specs import load_spec
from engine.submission import read_submission
from engine.submission_bodies import SubmissionBody, SubmissionError
from experiments.spec.check import check
from experiments.spec.serialized import plain, spec_text, spec_to_dict
from experiments.spec.simulated import SharedBuffer, Simulation
from experiments.spec.spec import Spec, spec_from_dict
from simulation.experiment import simulate_document
from simulation.fabrics import Fabric, SettingsError
from simulation.no_lab import no_lab
from simulation.settings import Buffer, Settings
from simulation.spec_fabric import simulated_fabric
from simulation.tcp import PROFILES
from topologies.fabric_spec import FabricSpec
from topologies.links import Link

FULL_BYTES = 1500
ROOM = 6
NS2 = Simulation(profile="ns2")
LINKS = 2 * 8 + 2 * 4
"""Of two leaves with four hosts each and two spines, both directions."""
PORTS = ("link", "access")


def small(fabric: Mapping[str, Any], **changes: Any) -> Spec:
    """Return the preset `small` under ECMP, with these fields of its fabric's links."""
    spec = load_spec("small", ("ecmp",)).spec
    data = spec_to_dict(replace(spec, **changes))
    for part, fields in fabric.items():
        if part in PORTS:
            rate = {"rate_mbps": data["fabric"][part]["rate_mbps"]}
            data["fabric"][part] = rate | dict(fields)
        else:
            data["fabric"].setdefault("overrides", {})[part] = dict(fields)
    return spec_from_dict(data)


def result_of(spec: Spec) -> tuple[Any, ...]:
    _, (run,) = simulate_document(spec)
    return run.flows, run.drops, run.duration_s


def test_links_that_all_have_so_many_bytes_are_ports_that_all_have_them() -> None:
    few: dict[str, Any] = {"buffer_bytes": ROOM * FULL_BYTES}
    by_links = result_of(small({"link": few, "access": few}, repeats=1))
    assert sum(by_links[1].values()) > 0
    assert result_of(small({}, repeats=1, simulation=Simulation(**few))) == by_links


@given(st.integers(1, 40), st.integers(0, FULL_BYTES - 1), st.integers(2, 60), st.integers(0, 2**32))
def test_packets_of_one_size_fare_alike_in_bytes_and_in_packets(
    room: int, excess_bytes: int, flows: int, seed: int
) -> None:
    """Hosts without agents, all to one: data wait in its direction alone, and acknowledgements never do."""
    settings = Settings(
        Fabric(leaves=2, hosts_per_leaf=4, spines=2), Buffer(), PROFILES["datacenter"], seed=seed
    )
    starts, sources = [50_000_000 * row for row in range(flows)], [row % 7 for row in range(flows)]

    def outcome(limits: tuple[int | None, int | None]) -> tuple[Any, ...]:
        sizes = [30 * settings.payload_bytes] * flows
        run = capstan_native.Simulation(
            settings.to_native(),
            settings.transport.to_native(),
            starts,
            sources,
            [7] * flows,
            sizes,
            rooms=[(link, *limits) for link in range(LINKS)],
        )
        assert run.run(10**7), "its books agree then"
        return run.flows(), run.totals(), run.links()

    assert outcome((room, None)) == outcome((None, room * FULL_BYTES + excess_bytes))


def test_what_is_small_has_more_room_in_bytes() -> None:
    """Acknowledgements and feedback come by the hundred: six full packets are many of them."""
    lost = [
        sum((simulate_document(small(fabric, simulation=NS2))[1][0].drops or {}).values())
        for fabric in ({"access": {"buffer_packets": ROOM}}, {"access": {"buffer_bytes": ROOM * FULL_BYTES}})
    ]
    assert lost[0] > lost[1]


def test_every_port_has_the_buffer_of_its_own_link() -> None:
    links = {"link": Link(10, buffer_bytes=9000), "access": Link(20, 7)}
    fabric = simulated_fabric(
        FabricSpec(**links, overrides={"l1-s1": Link(10, 5), "h1-l1": Link(20, 1, buffer_bytes=3000)})
    )
    rooms = {number: limits for number, *limits in fabric.rooms}
    limits = {name: [rooms[up], rooms[down]] for name, (up, down) in fabric.links.items()}
    assert limits["l1-s1"] == [[5, None]] * 2
    assert limits["l2-s1"] == [[None, 9000]] * 2
    assert limits["h1-l1"] == [[None, 3000]] * 2
    assert limits["h2-l1"] == [[7, None]] * 2


@pytest.mark.parametrize(
    ("fabric", "field", "words"),
    [
        ({"link": {"buffer_bytes": 9000, "buffer_packets": 6}}, "fabric.link", "give one of them"),
        (
            {"access": {"buffer_bytes": 1499}},
            "fabric.access.buffer_bytes",
            "1499 B hold no full packet (1500 B)",
        ),
        ({"l1-s2": {"buffer_bytes": 1499}}, "fabric.overrides.l1-s2.buffer_bytes", "give more"),
        ({"link": {"buffer_bytes": 0}}, "fabric.link.buffer_bytes", ""),
    ],
)
def test_a_buffer_that_cannot_be_is_found_with_its_field(
    fabric: dict[str, Any], field: str, words: str
) -> None:
    spec = spec_to_dict(load_spec("small", ("ecmp",)).spec)
    for part, fields in fabric.items():
        place = spec["fabric"] if part in PORTS else spec["fabric"]["overrides"]
        place[part] = {"rate_mbps": 10} | fields
    (problem,) = check(yaml.safe_dump(plain(spec)), "mine.yaml", ["ecmp"])
    assert problem.path == field
    assert words in problem.message


def test_a_lab_has_it_but_for_links_with_a_delay() -> None:
    spec = small({"link": {"buffer_bytes": 9000}})
    assert no_lab(spec) is None
    delayed = small({"link": {"buffer_bytes": 9000, "delay_ms": 1}})
    words = r"fabric.link: buffer_bytes beside delay_ms is for simulations only, .*: give buffer_packets"
    with pytest.raises(SubmissionError, match=words):
        read_submission(SubmissionBody(text=spec_text(delayed)))
    assert read_submission(SubmissionBody(text=spec_text(delayed), kind="simulation")).job.simulated


def test_a_spec_and_its_result_say_what_ports_hold() -> None:
    spec = small({"link": {"buffer_bytes": 9000}, "l1-s1": {"buffer_bytes": 6000}})
    assert spec_from_dict(spec_to_dict(spec)) == spec
    assert spec_to_dict(spec)["fabric"]["link"] == {"rate_mbps": 5.0, "buffer_bytes": 9000, "delay_ms": 0.0}
    document, _ = simulate_document(spec)
    assert "fifo, 256 packets or 6000 to 9000 B by link" in document["notices"][0]
    assert document["simulation"]["buffer_packets"] == {"link": None, "access": 256}
    assert document["simulation"]["link_buffer_bytes"] == {"link": 9000, "access": None}


def test_so_many_marks_as_never_wait_are_found_in_bytes_too() -> None:
    asked = Simulation(congestion_control="dctcp", mark_from_packets=7)
    with pytest.raises(
        SettingsError, match=r"7, but at most 6 full packets .*larger fabric.link.buffer_bytes"
    ):
        simulate_document(small({"link": {"buffer_bytes": 10_499}}, simulation=asked))


def test_hosts_own_ports_keep_their_bytes_beside_a_shared_buffer() -> None:
    shared = Simulation(shared_buffer=SharedBuffer(600_000))
    document, _ = simulate_document(small({"access": {"buffer_bytes": 9000}}, simulation=shared))
    assert "256 packets or 9000 B by link at hosts" in document["notices"][0]
