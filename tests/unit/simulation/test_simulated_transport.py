"""What a spec says for simulations alone: which settings follow, what they do to queues, and who refuses them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cli.app import capstan
from cli.specs import load_spec
from controller.schemes.loader import scheme_names
from engine.submission import read_submission
from engine.submission_bodies import SubmissionBody, SubmissionError
from experiments.results.document import Run
from experiments.spec.check import check
from experiments.spec.serialized import spec_text, spec_to_dict
from experiments.spec.simulated import SharedBuffer, SimulatedTcp, Simulation, lab_problem
from experiments.spec.spec import Spec, spec_from_dict
from simulation.experiment import simulate_document
from simulation.fabrics import SettingsError
from simulation.spec_marks import MARK_FROM_PACKETS, mark_from
from simulation.spec_run import payload_bytes
from simulation.spec_transport import transport_of
from simulation.tcp import PROFILES
from workloads.description import Transport

PRESET = Path("experiments/presets/small.yaml").read_text(encoding="utf-8")


def small(**simulation: Any) -> Spec:
    return replace(load_spec("small", ("ecmp",)).spec, simulation=Simulation(**simulation))


def long_flow(spec: Spec) -> tuple[Run, float, int]:
    """Return the run, the mean round trip of its background flow in ms, and the retransmissions of all flows."""
    _, (run,) = simulate_document(spec)
    (background,) = (flow for flow in run.flows if flow.state == "background")
    return run, background.rtt_ms or 0.0, sum(flow.retransmissions or 0 for flow in run.flows)


def test_without_a_word_hosts_have_the_profile_and_control_of_the_transport() -> None:
    assert transport_of(small()) == PROFILES["linux"]
    reno = replace(small(), transport=Transport("reno", "ns2"))
    assert transport_of(reno) == PROFILES["ns2"]
    assert mark_from(small(), transport_of(small())) == 0


def test_a_profile_brings_its_control_and_its_marks() -> None:
    spec = small(profile="datacenter")
    tcp = transport_of(spec)
    assert tcp == PROFILES["datacenter"]
    assert mark_from(spec, tcp) == MARK_FROM_PACKETS
    assert not transport_of(small(profile="datacenter", congestion_control="newreno")).marks


@pytest.mark.parametrize(
    ("transport", "asked", "words"),
    [
        (Transport("cubic", "linux"), None, "TCP profile linux with cubic"),
        (Transport("reno", "ns2"), None, "TCP profile ns2 with newreno"),
        (Transport("cubic", "linux"), "datacenter", "TCP profile datacenter with dctcp"),
    ],
)
def test_a_result_says_which_profile_it_is_of(transport: Transport, asked: Any, words: str) -> None:
    spec = replace(small(profile=asked), transport=transport, repeats=1)
    workload = replace(spec.workload, flows=replace(spec.workload.flows, count=4))
    document, _ = simulate_document(replace(spec, workload=workload))
    assert any(words in notice for notice in document["notices"])


@pytest.mark.parametrize(("profile", "said"), [("linux", False), ("ns2", True), ("datacenter", True)])
def test_a_result_says_where_no_handshake_chooses_between_copies(profile: str, said: bool) -> None:
    schemes = load_spec("small", ("repflow", "repsyn")).spec.schemes
    document, runs = simulate_document(replace(small(profile=profile), schemes=schemes, baseline="repflow"))
    assert any("repsyn both connections" in notice for notice in document["notices"]) == said
    by_flow, by_syn = ([flow.fct_s for flow in run.flows] for run in runs)
    assert (by_flow == by_syn) == said


def test_single_settings_go_over_the_profile() -> None:
    asked = SimulatedTcp(3, 40, 20.0, 5.0, 4, True, False, None, 3, 7.0)
    tcp = transport_of(small(profile="ns2", tcp=asked))
    windows = (tcp.initial_window, tcp.largest_window, tcp.duplicates, tcp.delayed_packets)
    times = (tcp.initial_timeout_us, tcp.least_timeout_us, tcp.delayed_us)
    assert windows == (3, 40, 4, 3)
    assert times == (20_000, 5_000, 7_000)
    assert (tcp.sack, tcp.rack, tcp.control) == (True, False, "newreno")


def test_dctcp_through_the_agents_tunnels_keeps_queues_short_without_loss() -> None:
    _, cubic_ms, _ = long_flow(small())
    run, marked_ms, resent = long_flow(small(congestion_control="dctcp", mark_from_packets=8))
    assert marked_ms < cubic_ms / 2
    assert resent == 0
    assert all(flow.state != "failed" for flow in run.flows)


def test_ports_that_drop_what_they_cannot_mark_spare_marked_acknowledgements() -> None:
    def dropped(**simulation: Any) -> int:
        spec = small(profile="datacenter", mark_from_packets=5, **simulation)
        flows = replace(spec.workload.flows, count=40, pattern="random")
        _, (run,) = simulate_document(replace(spec, workload=replace(spec.workload, flows=flows)))
        assert all(flow.state != "failed" for flow in run.flows)
        return sum((run.drops or {}).values())

    assert dropped() == 0
    all_without_data = dropped(drop_unmarkable=True)
    feedback_alone = dropped(drop_unmarkable=True, tcp=SimulatedTcp(mark_acknowledgements=True))
    assert 0 < feedback_alone < all_without_data


def test_buffers_in_bytes_take_the_place_of_those_in_packets() -> None:
    _, deep_ms, _ = long_flow(small())
    _, shallow_ms, resent = long_flow(small(buffer_bytes=8 * 1500))
    assert shallow_ms < deep_ms / 2
    assert resent > 0


def test_with_a_window_of_one_packet_a_flow_takes_a_round_trip_for_each() -> None:
    spec = small(tcp=SimulatedTcp(initial_window=1, largest_window=1, delayed_ack_packets=1))
    run, _, _ = long_flow(spec)
    sized = [flow for flow in run.flows if flow.size_bytes is not None]
    assert sized
    for flow in sized:
        packets = math.ceil((flow.size_bytes or 0) / payload_bytes(spec))
        assert (flow.fct_s or 0.0) * 1000 >= packets * (flow.min_rtt_ms or 0.0)
        assert (flow.retransmissions, flow.out_of_order) == (0, 0)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"tcp": SimulatedTcp(sack=False)}, "simulation.tcp.rack: needs sack"),
        ({"tcp": SimulatedTcp(initial_window=50, largest_window=5)}, "initial_window: 50 is above"),
        ({"tcp": SimulatedTcp(min_rto_ms=1e6)}, "time-outs are at most 60 s"),
        ({"profile": "ns2", "tcp": SimulatedTcp(reordering_window_quarters=2)}, "quarters: only RACK waits"),
        ({"mark_from_packets": 100_000}, "none would be marked"),
        ({"drop_unmarkable": True}, "simulation.drop_unmarkable: no port marks"),
        ({"tcp": SimulatedTcp(mark_acknowledgements=True)}, "simulation.tcp.mark_acknowledgements: .* marks"),
    ],
)
def test_settings_that_do_not_go_together_say_what_to_give(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        simulate_document(small(**asked))


SIMULATIONS = st.builds(
    Simulation,
    profile=st.sampled_from([None, "ns2", "linux", "datacenter"]),
    congestion_control=st.sampled_from([None, "newreno", "cubic", "dctcp"]),
    tcp=st.builds(
        SimulatedTcp, initial_window=st.none() | st.integers(1, 100), sack=st.none() | st.booleans()
    ),
    buffer_bytes=st.none() | st.integers(1, 10**7),
    shared_buffer=st.none() | st.builds(SharedBuffer, st.integers(1500, 10**7), st.floats(1, 16)),
    mark_from_packets=st.none() | st.integers(0, 1000),
    drop_unmarkable=st.none() | st.booleans(),
    control_loss=st.none() | st.floats(0, 0.9),
    agree_within=st.floats(0, 1),
)


@pytest.mark.slow
@given(SIMULATIONS)
def test_a_spec_keeps_what_it_says_for_simulations(simulation: Simulation) -> None:
    spec = replace(small(), simulation=simulation)
    assert spec_from_dict(spec_to_dict(spec)).simulation == simulation
    own_bytes = simulation.buffer_bytes
    wrong = own_bytes is not None and (simulation.shared_buffer is not None or own_bytes < spec.fabric.mtu)
    assert bool(check(spec_text(spec), "", scheme_names())) == wrong


@given(SIMULATIONS)
def test_a_lab_refuses_all_of_it_but_the_tolerance(simulation: Simulation) -> None:
    said = replace(simulation, agree_within=0.15) != Simulation()
    assert (lab_problem(simulation) is not None) == said


def test_run_and_a_submission_for_a_lab_refuse_it_and_say_what_takes_it() -> None:
    text = f"{PRESET}simulation:\n  profile: datacenter\n  tcp: {{min_rto_ms: 1}}\n"
    with pytest.raises(
        SubmissionError, match=r"simulation.profile, simulation.tcp.min_rto_ms are for simulations"
    ):
        read_submission(SubmissionBody(text=text))
    assert (
        read_submission(SubmissionBody(text=text, kind="simulation")).spec.simulation.profile == "datacenter"
    )


def test_limits_and_misspelt_fields_are_found_with_their_lines(tmp_path: Path) -> None:
    spec = tmp_path / "wrong.yaml"
    spec.write_text(f"{PRESET}simulation:\n  profil: ns2\n  mark_from_packets: -1\n", encoding="utf-8")
    line = len(PRESET.splitlines())
    answer = CliRunner().invoke(capstan, ["check", str(spec)])
    assert answer.exit_code == 1
    assert f"{spec}:{line + 2}:" in answer.stderr
    assert f"{spec}:{line + 3}:" in answer.stderr


def test_marks_are_swept_like_any_field(tmp_path: Path) -> None:
    spec = tmp_path / "marks.yaml"
    axis = "sweep:\n  - {label: marks, fields: [simulation.mark_from_packets], values: [4, 30]}\n"
    spec.write_text(f"{PRESET}simulation: {{congestion_control: dctcp}}\n{axis}", encoding="utf-8")
    arguments = ["simulate", str(spec), "--scheme", "ecmp", "--results", str(tmp_path / "results")]
    answer = CliRunner().invoke(capstan, arguments, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output


def test_a_sprayed_flow_whose_rack_waits_longer_retransmits_less() -> None:
    def resent(quarters: int | None) -> int:
        tcp = SimulatedTcp(reordering_window_quarters=quarters)
        spec = replace(
            load_spec("small", ("rps",)).spec, simulation=Simulation(profile="datacenter", tcp=tcp)
        )
        _, (run,) = simulate_document(spec)
        return sum(flow.retransmissions or 0 for flow in run.flows)

    assert resent(None) == resent(1) > 0
    assert resent(4) < resent(1)
