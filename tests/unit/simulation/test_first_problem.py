"""What a run would refuse is found before any: by `check`, by a submission, and by `prepare`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.app import capstan
from cli.specs import load_spec
from engine.submission import read_submission
from engine.submission_bodies import SubmissionBody, SubmissionError
from experiments.spec.check import preset_names
from experiments.spec.simulated import SharedBuffer, SimulatedTcp, Simulation
from experiments.spec.spec import Axis, SchemeChoice, Spec
from simulation.batch import prepare, simulate
from simulation.experiment import simulate_document
from simulation.fabrics import SettingsError
from simulation.first_problem import first_problem
from simulation.no_lab import no_lab
from topologies.fabric_spec import FabricSpec
from topologies.links import Link

PRESET = Path("experiments/presets/small.yaml").read_text(encoding="utf-8")
DCTCP = {"congestion_control": "dctcp"}

SMALL_LINKS = {f"l{leaf}-s{spine}": {"buffer_packets": 30} for leaf in (1, 2) for spine in (1, 2, 3, 4)}


def text_with(fields: dict[str, Any]) -> str:
    """Return `small` with values at dotted paths."""
    data = yaml.safe_load(PRESET)
    for path, value in fields.items():
        *outer, last = path.split(".")
        part = data
        for name in outer:
            part = part.setdefault(name, {})
        part[last] = value
    return yaml.safe_dump(data, sort_keys=False)


REFUSED = [
    ({"simulation.tcp.delayed_ack_ms": 0}, "simulation.tcp.delayed_ack_ms: .* above 0 ms"),
    (
        {"simulation": {"profile": "datacenter", "tcp": {"delayed_ack_packets": 2}}},
        "delayed_ack_ms: .*2 packets",
    ),
    ({"simulation.buffer_bytes": 1000}, r"simulation.buffer_bytes: 1000 B hold no full packet \(1500 B\)"),
    ({"fabric.down": ["h1-l1"], "simulation.profile": "ns2"}, "fabric.down: h1-l1 is a host's only link"),
    ({"fabric.down": [f"l2-s{spine}" for spine in (1, 2, 3, 4)]}, "fabric.down: has all links of l2"),
    (
        {"fabric.down": ["l1-s1", "l1-s2", "l2-s3", "l2-s4"], "simulation.profile": "ns2"},
        "fabric.down: .*no path is left from h. to h.: too many links are down",
    ),
    ({"simulation.tcp.sack": False}, "simulation.tcp.rack: needs sack"),
    (
        {"simulation.tcp": {"initial_window": 9, "largest_window": 5}},
        "initial_window: 9 is above the largest",
    ),
    (
        {"simulation.mark_from_packets": 300},
        r"300, but at most 256 full packets .*larger fabric.link.buffer_packets",
    ),
    ({"simulation.drop_unmarkable": True}, "simulation.drop_unmarkable: no port marks"),
    ({"simulation.mark_from_packets": 30}, "simulation.mark_from_packets: no host's TCP reads marks"),
    (
        {"simulation.profile": "ns2", "fabric.access.rate_mbps": None},
        "fabric.access.rate_mbps: a simulated link",
    ),
    (
        {"simulation.profile": "ns2", "fabric.overrides": {"h1-l1": {"rate_mbps": None}}},
        "fabric.overrides.h1-l1.rate_mbps: a simulated link",
    ),
    (
        {"simulation.profile": "ns2", "fabric.overrides": {"h1-l1": {"rate_mbps": 1e-8}}},
        "fabric.overrides.h1-l1.rate_mbps: 1e-08 Mbit/s are less than 1 bit/s",
    ),
    (
        {"simulation": DCTCP | {"buffer_bytes": 15_000}},
        "65, but at most 10 full packets .*simulation.buffer_bytes",
    ),
    (
        {"simulation": DCTCP | {"shared_buffer": {"bytes": 9000}}},
        "65, but at most 3 full packets .*shared_buffer",
    ),
    (
        {"simulation": DCTCP, "fabric.overrides": SMALL_LINKS},
        "65, but at most 30 full packets",
    ),
    (
        {"schemes": ["ecmp", "dctcp"], "simulation.buffer_bytes": 15_000},
        "scheme dctcp: dctcp.mark_from_packets: 65, but",
    ),
    *(
        ({path: 2**33}, rf"{path.rpartition('.')[2]}: must be at most \d+, not {2**33}")
        for path in (
            "simulation.tcp.initial_window",
            "simulation.tcp.largest_window",
            "simulation.tcp.duplicate_acks",
            "simulation.tcp.delayed_ack_packets",
            "simulation.tcp.min_rto_ms",
            "simulation.tcp.initial_rto_ms",
            "simulation.tcp.delayed_ack_ms",
            "simulation.mark_from_packets",
            "fabric.link.buffer_packets",
            "fabric.link.rate_mbps",
            "fabric.link.delay_ms",
        )
    ),
    ({"simulation.buffer_bytes": 2**70}, r"buffer_bytes: must be at most \d+"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_check_and_a_submission_say_which_field_a_run_would_refuse(
    fields: dict[str, Any], words: str, tmp_path: Path
) -> None:
    spec = tmp_path / "mine.yaml"
    spec.write_text(text_with(fields), encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["check", str(spec)])
    assert answer.exit_code == 1, answer.output
    assert spec.name in answer.stderr
    with pytest.raises(SubmissionError, match=words) as raised:
        read_submission(SubmissionBody(text=text_with(fields), kind="simulation"))
    assert raised.value.problems[0].message.partition(": ")[2].partition("; ")[0] in answer.stderr


def test_check_names_the_line_of_what_a_simulation_refuses(tmp_path: Path) -> None:
    spec = tmp_path / "mine.yaml"
    spec.write_text(f"{PRESET}simulation:\n  tcp:\n    delayed_ack_ms: 0\n", encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["check", str(spec)])
    assert f"{spec}:{len(PRESET.splitlines()) + 3}:" in answer.stderr


def test_a_point_of_a_sweep_is_named_by_check_too(tmp_path: Path) -> None:
    spec = tmp_path / "mine.yaml"
    axis = "sweep:\n  - {label: marks, fields: [simulation.mark_from_packets], values: [30, 300]}\n"
    spec.write_text(f"{PRESET}simulation: {{congestion_control: dctcp}}\n{axis}", encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["check", str(spec)])
    assert answer.exit_code == 1
    assert f"{spec}:{len(PRESET.splitlines()) + 3}:" in answer.stderr
    assert "marks = 300: simulation.mark_from_packets: 300, but at most 256" in answer.stderr


def test_a_lab_refuses_a_sweep_over_what_only_a_simulation_has() -> None:
    axis = "sweep:\n  - {label: marks, fields: [simulation.mark_from_packets], values: [30, 40]}\n"
    with pytest.raises(SubmissionError, match=r"simulation.mark_from_packets is for simulations only"):
        read_submission(SubmissionBody(text=f"{PRESET}{axis}"))


def test_check_leaves_a_lab_what_only_a_simulation_refuses(tmp_path: Path) -> None:
    spec = tmp_path / "mine.yaml"
    spec.write_text(text_with({"fabric.access.rate_mbps": None}), encoding="utf-8")
    assert CliRunner().invoke(capstan, ["check", str(spec)]).exit_code == 0


def test_check_passes_a_scheme_whose_path_policy_comes_with_the_run(tmp_path: Path) -> None:
    scheme = tmp_path / "own.yaml"
    own = Path("controller/schemes/rps.yaml").read_text(encoding="utf-8")
    data = yaml.safe_load(own)
    data["name"] = "own"
    for of_class in ("short", "long"):
        data[of_class] |= {"group": "spray", "entropy": "file"}
    scheme.write_text(yaml.safe_dump(data), encoding="utf-8")
    spec = tmp_path / "mine.yaml"
    fields = {"schemes": ["ecmp", str(scheme)], "simulation.profile": "ns2"}
    spec.write_text(text_with(fields), encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["check", str(spec)])
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize(
    "asked",
    [
        {"policy": {"long": {"entropy": "file"}}},
        {"schemes": [{"name": "ecmp", "overrides": {"long.entropy": "file"}}]},
    ],
)
def test_check_passes_a_path_policy_that_overrides_ask_for(asked: dict[str, Any], tmp_path: Path) -> None:
    spec = tmp_path / "mine.yaml"
    marks = {"mark_from_packets": 30, "drop_unmarkable": True}
    spec.write_text(text_with({"schemes": ["ecmp"], "simulation": marks} | asked), encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["check", str(spec)])
    assert answer.exit_code == 0, answer.output


@pytest.mark.slow
@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_simulated(name: str) -> None:
    assert first_problem(load_spec(name).spec) is None


def test_too_many_flows_to_replicate_are_found_before_a_run() -> None:
    spec = load_spec("small", ("repflow",)).spec
    flows = replace(spec.workload.flows, count=15_000)
    with pytest.raises(SettingsError, match=r"workload.flows: .*too many to replicate"):
        prepare(replace(spec, workload=replace(spec.workload, flows=flows)))


def test_a_number_that_the_simulator_cannot_hold_is_no_type_error() -> None:
    spec = load_spec("small", ("ecmp",)).spec
    with pytest.raises(SettingsError, match=r"scheme ecmp: .*largest_window.*out of range"):
        prepare(replace(spec, simulation=Simulation(tcp=SimulatedTcp(largest_window=2**33))))


def test_a_result_says_which_links_hold_too_little_to_mark() -> None:
    spec = load_spec("small", ("ecmp",)).spec
    fabric = replace(spec.fabric, overrides={"l1-s2": Link(5, 30)})
    few = replace(spec.workload, flows=replace(spec.workload.flows, count=4))
    simulation = Simulation(congestion_control="dctcp")
    document, _ = simulate_document(replace(spec, workload=few, fabric=fabric, simulation=simulation))
    assert any("l1-s2 holds fewer and marks none" in notice for notice in document["notices"])


SETTINGS = st.builds(
    Simulation,
    profile=st.sampled_from([None, "ns2", "linux", "datacenter"]),
    congestion_control=st.sampled_from([None, "newreno", "cubic", "dctcp"]),
    tcp=st.builds(
        SimulatedTcp,
        initial_window=st.none() | st.integers(1, 1_000_000),
        largest_window=st.none() | st.integers(1, 1_000_000),
        duplicate_acks=st.none() | st.integers(1, 1_000_000),
        sack=st.none() | st.booleans(),
        rack=st.none() | st.booleans(),
        delayed_ack_packets=st.none() | st.integers(1, 1_000_000),
        delayed_ack_ms=st.none() | st.floats(0, 60_000),
        min_rto_ms=st.none() | st.floats(0, 60_000, exclude_min=True),
    ),
    buffer_bytes=st.none() | st.integers(1, 10**12),
    shared_buffer=st.none() | st.builds(SharedBuffer, st.integers(1, 10**12), st.floats(0.01, 16)),
    mark_from_packets=st.none() | st.integers(0, 1_000_000),
    drop_unmarkable=st.none() | st.booleans(),
)
FABRICS = st.builds(
    FabricSpec,
    leaves=st.integers(2, 3),
    spines=st.integers(1, 3),
    link=st.builds(Link, st.floats(1, 100), st.integers(1, 1_000_000), st.floats(0, 10)),
    access=st.builds(Link, st.floats(1, 100), st.integers(1, 1_000_000)),
    down=st.lists(st.sampled_from(["l1-s1", "l2-s1", "h1-l1"]), unique=True, max_size=2).map(tuple),
)


def one_flow(fabric: FabricSpec, simulation: Simulation, scheme: str) -> Spec:
    spec = load_spec("small", (scheme,)).spec
    flows = replace(
        spec.workload.flows, count=1, arrivals=replace(spec.workload.flows.arrivals, rate_per_s=1)
    )
    workload = replace(spec.workload, flows=flows, long_flows=None)
    schemes = (SchemeChoice(scheme, scheme),)
    return replace(
        spec,
        fabric=fabric,
        simulation=simulation,
        workload=workload,
        schemes=schemes,
        warm_up_s=0.0,
        timeout_s=1.0,
    )


@settings(max_examples=40)
@given(FABRICS, SETTINGS, st.sampled_from(["ecmp", "caps", "pias", "dctcp", "repflow"]))
def test_what_is_prepared_can_be_run(fabric: FabricSpec, simulation: Simulation, scheme: str) -> None:
    try:
        case = prepare(one_flow(fabric, simulation, scheme))
    except SettingsError:
        return
    case.setting.spec.plan(0)
    for _, run in simulate([case]):
        assert run.flows


def test_a_lab_refuses_a_scheme_that_an_axis_makes_one_for_simulations_only() -> None:
    spec = load_spec("small", ("ecmp",)).spec
    assert no_lab(replace(spec, sweep=(Axis("paths", ("schemes.0.name",), ("ecmp", "rps")),))) is None
    swept = replace(spec, sweep=(Axis("transport", ("schemes.0.name",), ("ecmp", "dctcp")),))
    assert "scheme dctcp: `dctcp` (ports that mark packets) is for simulations only" in str(no_lab(swept))
