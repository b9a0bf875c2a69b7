"""Schemes that bring their own hosts and ports: what they are in a simulation, and that no lab takes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.app import capstan
from cli.specs import load_spec
from controller.schemes import loader
from controller.schemes.overrides import first_lab_problem, with_overrides
from engine.submission import preset_submission, read_submission
from engine.submission_bodies import SubmissionBody, SubmissionError
from experiments.spec.simulated import Simulation
from experiments.spec.spec import SchemeChoice, Spec
from plain.reading import PlainError
from simulation.batch import prepare
from simulation.experiment import simulate_document
from simulation.fabrics import SettingsError
from simulation.scheme_hosts import SimulatedHosts, hosts_under
from simulation.settings import PFabricHosts
from simulation.spec_scheme import simulated_scheme
from simulation.tcp import PROFILES, Tcp
from topologies.fabric_spec import FabricSpec
from topologies.links import Link

OWN_HOSTS = ("dctcp", "pfabric")


def small(*schemes: str, **changes: Any) -> Spec:
    return replace(load_spec("small", schemes or OWN_HOSTS).spec, **changes)


def hosts(spec: Spec, name: str, **overrides: Any) -> SimulatedHosts:
    return hosts_under(spec, simulated_scheme(spec, SchemeChoice(name, name, overrides)))


def test_pfabric_has_the_settings_of_yaps_in_packet_times() -> None:
    ten_gbit = small(fabric=FabricSpec(link=Link(10_000), access=Link(10_000)))
    found = hosts(ten_gbit, "pfabric")
    assert isinstance(found.transport, PFabricHosts)
    assert (found.transport.initial_window, found.transport.largest_window) == (12, 15)
    assert found.transport.timeout_us == pytest.approx(45)
    assert (found.buffer.queue, found.buffer.limit_bytes) == ("pfabric", 36_864)
    slow = hosts(small(fabric=FabricSpec(link=Link(5), access=Link(5))), "pfabric").transport
    assert isinstance(slow, PFabricHosts)
    assert slow.timeout_us == pytest.approx(45 * 2000)


def test_dctcp_is_the_hosts_tcp_but_for_its_control_and_the_ports_marks() -> None:
    for simulation in (Simulation(), Simulation(profile="datacenter"), Simulation(profile="ns2")):
        spec = small(simulation=simulation)
        found = hosts(spec, "dctcp")
        profile = PROFILES[simulation.profile or "linux"]
        assert found.transport == replace(profile, control="dctcp", marks=True)
        assert found.buffer.mark_from_packets == 65
    assert hosts(small(), "dctcp", dctcp={"mark_from_packets": 20}).buffer.mark_from_packets == 20
    asked = small(simulation=Simulation(mark_from_packets=30))
    assert hosts(asked, "dctcp").buffer.mark_from_packets == 30, "the spec's own goes over the scheme's"


def test_other_schemes_of_the_same_spec_keep_the_specs_hosts() -> None:
    spec = small("ecmp", *OWN_HOSTS)
    found = prepare(spec).hosts
    assert found[0].transport == PROFILES["linux"]
    assert found[0].buffer.mark_from_packets == 0
    alone, _ = simulate_document(small("ecmp"))
    beside, _ = simulate_document(spec)
    assert beside["schemes"]["ecmp"]["short"]["afct_ms"] == alone["schemes"]["ecmp"]["short"]["afct_ms"]
    assert set(beside["simulation"]["hosts"]) == {*OWN_HOSTS}
    notices = "\n".join(beside["notices"])
    assert "Under pfabric hosts send by pFabric (windows of 12 to 15 packets, time-out of 90 ms)" in notices
    assert "Under dctcp hosts send by TCP dctcp, ports mark from 65 waiting packets on" in notices


def round_trip_ms(spec: Spec) -> float:
    """Return the smoothed round trip of the background flow, which alone fills its path at 2.4 ms a packet."""
    _, (run,) = simulate_document(spec)
    return next(flow.rtt_ms or 0.0 for flow in run.flows if flow.state == "background")


def test_dctcps_queue_is_about_as_long_as_its_ports_let_it_be() -> None:
    few = SchemeChoice("dctcp", "dctcp", {"dctcp": {"mark_from_packets": 10}})
    short_ms = round_trip_ms(replace(small("dctcp"), schemes=(few,)))
    assert 10 < short_ms < 2 * 10 * 2.4
    assert round_trip_ms(small("dctcp")) > 2 * short_ms
    assert round_trip_ms(small("ecmp", simulation=Simulation(congestion_control="newreno"))) > 3 * short_ms


def test_pfabrics_short_flows_take_little_more_than_alone() -> None:
    """SIGCOMM 2013, figure 8: near the optimum; ecmp's wait behind the long flow."""
    document, _ = simulate_document(small("ecmp", "pfabric"))
    means = {name: entry["short"]["afct_ms"] for name, entry in document["schemes"].items()}
    # 30 kB in packets of 1374 B by an access link of 15 Mbit/s, store and forward over two links of 5 Mbit/s
    alone_ms = 22 * 0.8 + 2 * 2.4
    assert means["pfabric"] < 1.5 * alone_ms < means["ecmp"]


def test_pfabrics_time_outs_are_of_the_slowest_link_so_a_faster_core_leaves_them() -> None:
    timeouts = []
    alike = [FabricSpec(link=Link(core_mbps), access=Link(15)) for core_mbps in (5, 15, 60)]
    for fabric in (*alike, replace(alike[-1], overrides={"h2-l1": Link(3)})):
        found = hosts(small(fabric=fabric), "pfabric").transport
        assert isinstance(found, PFabricHosts)
        timeouts.append(found.timeout_us)
    assert timeouts == pytest.approx([37.5 * 2400, 37.5 * 800, 37.5 * 800, 37.5 * 4000])


@pytest.mark.parametrize(
    ("changes", "name", "overrides", "words"),
    [
        ({"fabric": FabricSpec(link=Link(5, 20), access=Link(5))}, "dctcp", {}, "none would be marked"),
        ({"fabric": FabricSpec(link=Link(5, delay_ms=30), access=Link(5))}, "pfabric", {}, "acknowledged"),
        ({"fabric": FabricSpec(link=Link(5), access=Link(5), mtu=9000)}, "pfabric", {}, "acknowledged"),
        *(
            (
                {"fabric": FabricSpec(link=Link(5), access=Link(5), overrides={name: Link(5, delay_ms=50)})},
                "pfabric",
                {},
                "acknowledged",
            )
            for name in ("h1-l1", "l1-s1")
        ),
        ({}, "pfabric", {"pfabric": {"timeout_packet_times": 2}}, "timeout_packet_times by more"),
    ],
)
def test_settings_that_would_not_work_say_what_to_give(
    changes: dict[str, Any], name: str, overrides: dict[str, Any], words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        prepare(small(schemes=(SchemeChoice(name, name, overrides),), **changes))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"dctcp": {}}, "hosts send by one of them"),
        ({"queues": {"number": 2}}, "queues: cannot be together with pfabric"),
        ({"replication": "flow"}, "replication: cannot be together with pfabric"),
        ({"short": {"coding": {"code": "rlc"}}}, r"short\.coding: cannot be together with pfabric"),
        ({"pfabric": {"initial_window": 16}}, "above the largest window"),
    ],
)
def test_what_cannot_be_with_pfabric_is_refused(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(PlainError, match=words):
        with_overrides(loader.load("pfabric"), overrides)


def test_every_scheme_but_these_can_be_in_a_lab() -> None:
    assert {*loader.scheme_names()} - {*loader.lab_scheme_names()} == {*OWN_HOSTS}
    assert first_lab_problem(small("ecmp", "caps").schemes) is None
    assert "use ./capstan simulate" in str(first_lab_problem(small("ecmp", "pfabric").schemes))
    made = SchemeChoice("ecmp", "ecmp", {"dctcp": {"mark_from_packets": 20}})
    assert "dctcp" in str(first_lab_problem([made])), "by overrides, too"
    made = SchemeChoice("caps", "caps", {"short": {"coding": {"estimator": "marks"}}})
    assert "scheme caps: `estimator: marks`" in str(first_lab_problem([made]))


@pytest.mark.parametrize("name", OWN_HOSTS)
def test_a_submission_for_a_lab_refuses_them_and_a_simulation_takes_them(name: str) -> None:
    with pytest.raises(SubmissionError, match=rf"scheme {name}: .* \(kind: simulation\)"):
        read_submission(SubmissionBody(preset="small", schemes=["ecmp", name]))
    found = read_submission(SubmissionBody(preset="small", schemes=["ecmp", name], kind="simulation"))
    assert [choice.name for choice in found.spec.schemes] == ["ecmp", name]


def test_all_schemes_of_a_lab_leave_them_out() -> None:
    for found in (read_submission(SubmissionBody(preset="all-schemes")), preset_submission("all-schemes")):
        names = {choice.name for choice in found.spec.schemes}
        assert names == {*loader.lab_scheme_names()}


def test_check_says_that_a_spec_is_for_simulations_alone(tmp_path: Path) -> None:
    text = Path("experiments/presets/small.yaml").read_text(encoding="utf-8")
    spec = tmp_path / "mine.yaml"
    spec.write_text(text.replace("schemes: [", "schemes: [pfabric, "), encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["check", str(spec)])
    assert answer.exit_code == 0
    assert "nothing wrong" in answer.stdout
    assert "scheme pfabric: " in answer.stdout
    assert "use ./capstan simulate" in answer.stdout


def test_a_tcp_of_the_specs_own_is_not_asked_of_pfabrics_hosts() -> None:
    found = hosts(small(simulation=Simulation(profile="ns2")), "pfabric")
    assert not isinstance(found.transport, Tcp)
