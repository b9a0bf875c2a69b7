"""A switch's buffer that its ports share: by the spec, by the command line, and what cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.app import capstan
from cli.specs import load_spec
from experiments.spec.check import check
from experiments.spec.serialized import spec_text
from experiments.spec.simulated import SharedBuffer, Simulation
from experiments.spec.spec import SchemeChoice, Spec
from simulation.experiment import simulate_document
from simulation.fabrics import Fabric, SettingsError
from simulation.runs import run
from simulation.scheme_hosts import hosts_under
from simulation.settings import Buffer, PFabricHosts, Settings, Sharing
from simulation.spec_scheme import simulated_scheme
from simulation.trace import read_trace

PRESET = Path("experiments/presets/small.yaml").read_text(encoding="utf-8")


def small(*schemes: str, **simulation: Any) -> Spec:
    return replace(load_spec("small", schemes or ("ecmp",)).spec, simulation=Simulation(**simulation))


@pytest.mark.parametrize(("alpha", "size"), [(0.5, 300_000), (1.0, 150_000), (4.0, 75_000)])
def test_a_full_queue_holds_what_the_closed_form_says(tmp_path: Path, alpha: float, size: int) -> None:
    """Alone: alpha B / (1 + alpha) (Choudhury and Hahne); several: native/simulator/tests/figures/shared_buffers.rs."""
    rows = [f"0,{sender},0,5840000" for sender in (1, 2, 3)]
    trace = tmp_path / "flows.csv"
    trace.write_text("start_ns,src,dst,bytes\n" + "\n".join(rows), encoding="utf-8")
    hosts = PFabricHosts(initial_window=4000, largest_window=4000, timeout_us=50_000)
    settings = Settings(Fabric(leaves=1, hosts_per_leaf=4), Buffer(shared=Sharing(size, alpha)), hosts)
    result = run(settings, read_trace(trace))
    down = next(link for link in result.links if link["tier"] == "leaf to host")
    share = alpha * size / (1 + alpha)
    assert abs(down["longest_queue_bytes"] - share) < 1500
    assert down["dropped"] > 0


def test_a_spec_shares_and_says_so() -> None:
    spec = small("ecmp", "pias", shared_buffer=SharedBuffer(40_000, 0.5))
    document, _ = simulate_document(spec)
    assert document["simulation"]["shared_buffer"] == {"bytes": 40_000, "alpha": 0.5}
    assert (
        "Ports of a switch share 40000 B: a queue holds up to 0.5 times what is free." in document["notices"]
    )
    own, _ = simulate_document(small("ecmp"))
    assert document["schemes"]["ecmp"]["short"]["afct_ms"] < own["schemes"]["ecmp"]["short"]["afct_ms"], (
        "behind a queue of 26 kB at most a short flow waits less than behind 256 packets"
    )


def test_what_has_a_buffer_of_its_own_keeps_it() -> None:
    spec = small(shared_buffer=SharedBuffer(40_000))
    found = {
        name: hosts_under(spec, simulated_scheme(spec, SchemeChoice(name, name, overrides)))
        for name, overrides in (
            ("ecmp", {}),
            ("pias", {"queues": {"buffer_packets": 32}}),
            ("pfabric", {}),
        )
    }
    assert (found["ecmp"].buffer.limit_packets, found["ecmp"].by_link) == (None, "hosts")
    assert (found["pias"].buffer.limit_packets, found["pias"].by_link) == (32, "none")
    assert found["ecmp"].buffer.shared == found["pias"].buffer.shared == Sharing(40_000)
    assert found["pfabric"].buffer.shared is None


@pytest.mark.parametrize(
    ("simulation", "field", "words"),
    [
        (
            {"shared_buffer": SharedBuffer(9000), "buffer_bytes": 9000},
            "simulation.buffer_bytes",
            "leave one out",
        ),
        ({"shared_buffer": SharedBuffer(2000, 0.5)}, "simulation.shared_buffer.bytes", "give more"),
        ({"shared_buffer": SharedBuffer(1000, 4)}, "simulation.shared_buffer.bytes", "give more"),
    ],
)
def test_what_cannot_be_is_found_by_check_and_by_simulate(
    simulation: dict[str, Any], field: str, words: str
) -> None:
    spec = small(**simulation)
    (problem,) = check(spec_text(spec), "mine.yaml", ["ecmp"])
    assert problem.path == field
    assert words in problem.message
    with pytest.raises(SettingsError, match=words):
        simulate_document(spec)


def test_the_command_line_shares_for_a_trace(tmp_path: Path) -> None:
    trace = tmp_path / "flows.csv"
    trace.write_text("start_ns,src,dst,bytes\n0,1,0,14600\n", encoding="utf-8")
    asked = ["simulate", "--trace-file", str(trace), "--shared-buffer-bytes", "300000", "--alpha", "2"]
    answer = CliRunner().invoke(capstan, [*asked, "--json", str(tmp_path / "out.json")])
    assert answer.exit_code == 0, answer.output
    assert "300000 B a switch shared, alpha 2" in answer.output
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["settings"]["buffer"]["shared"] == {"bytes": 300_000, "alpha": 2.0}
    wrong = CliRunner().invoke(capstan, ["simulate", "--trace-file", str(trace), "--alpha", "2"])
    assert wrong.exit_code == 1
    assert "--shared-buffer-bytes" in str(wrong.exception or wrong.output)
