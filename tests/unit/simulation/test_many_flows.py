"""More flows than a lab's ports: simulated, and refused where switches are asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.app import capstan
from cli.specs import load_spec
from engine.submission import read_submission
from engine.submission_bodies import SubmissionBody, SubmissionError
from experiments.spec.spec import Spec
from simulation.experiment import simulate_document
from simulation.no_lab import no_lab
from workloads.description import MOST_LAB_FLOWS, SOURCE_PORTS, Sizes
from workloads.patterns import senders


def many(count: int) -> Spec:
    """Return `small` with so many flows of one packet."""
    spec = load_spec("small", ("ecmp",)).spec
    flows = spec.workload.flows
    arrivals = replace(flows.arrivals, rate_per_s=1000)
    flows = replace(flows, count=count, sizes=Sizes("fixed", bytes=500), arrivals=arrivals)
    return replace(spec, workload=replace(spec.workload, flows=flows, long_flows=None))


@pytest.mark.slow
def test_every_flow_of_many_ends_and_is_counted_as_its_own() -> None:
    _, (run,) = simulate_document(many(25_000))
    assert len(run.flows) == 25_000
    assert all((flow.state, flow.bytes_acked, flow.packets) == ("finished", 500, 2) for flow in run.flows)


def test_a_lab_refuses_what_it_has_no_ports_for(tmp_path: Path) -> None:
    assert no_lab(many(MOST_LAB_FLOWS)) is None
    assert "use ./capstan simulate" in str(no_lab(many(MOST_LAB_FLOWS + 1)))
    changes = {"workload.flows.count": MOST_LAB_FLOWS + 1}
    with pytest.raises(SubmissionError, match="too many for one run on switches"):
        read_submission(SubmissionBody(preset="small", set=changes))
    found = read_submission(SubmissionBody(preset="small", set=changes, kind="simulation"))
    assert found.spec.expected_flows() == MOST_LAB_FLOWS + 1
    spec = tmp_path / "many.yaml"
    text = Path("experiments/presets/small.yaml").read_text(encoding="utf-8")
    spec.write_text(text.replace("count: 20", "count: 20000"), encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["check", str(spec)])
    assert answer.exit_code == 0, answer.output
    assert "20000 flows are too many for one run on switches (10500)" in answer.stdout


def test_check_refuses_more_flows_than_the_sending_hosts_have_ports(tmp_path: Path) -> None:
    small = load_spec("small", ("ecmp",)).spec
    sources = len(senders(small.workload.flows.pattern, small.endpoints()))
    most = sources * SOURCE_PORTS
    text = Path("experiments/presets/small.yaml").read_text(encoding="utf-8")
    spec = tmp_path / "many.yaml"
    fewer = most * 9 // 10  # sources are drawn: some send more than others
    for count, exit_code in ((fewer, 0), (most + 1, 1)):
        spec.write_text(text.replace("count: 20", f"count: {count}"), encoding="utf-8")
        answer = CliRunner().invoke(capstan, ["check", str(spec)])
        assert answer.exit_code == exit_code, answer.output
    assert f"{most + 1} flows are too many for one run of {sources} sending hosts ({most})" in answer.output
