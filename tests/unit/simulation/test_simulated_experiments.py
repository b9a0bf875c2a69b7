"""Simulated experiments: many runs at once, kept whole or not at all, and in the store like those of a lab."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.app import capstan
from cli.simulated_progress import step_line
from cli.specs import load_spec
from controller.store.database import open_database
from controller.store.experiments import ExperimentStore
from controller.store.finished_experiments import FinishedExperiment, FinishedRun, keep_finished
from controller.store.listing import PageQuery
from experiments.results.document import Run, json_text
from experiments.results.notes import notes
from experiments.results.report import read_result, write_report
from experiments.results.run_record import run_body
from experiments.spec.spec import Spec
from experiments.spec.sweep import Axis
from simulation.batch import Step, left_s, prepare, simulate
from simulation.experiment import simulate_document, simulate_spec, simulate_sweep
from simulation.fabrics import SettingsError
from topologies.links import Link


def small(*schemes: str) -> Spec:
    return load_spec("small", schemes or ("ecmp", "rps")).spec


def loads() -> Spec:
    axis = Axis("load", ("workload.flows.arrivals.rate_per_s",), (6, 12))
    return replace(small("ecmp"), sweep=(axis,), repeats=2)


def settled(document: dict[str, object]) -> str:
    return json_text({key: value for key, value in document.items() if key not in ("started", "duration_s")})


@pytest.mark.slow
def test_runs_side_by_side_give_the_bytes_of_runs_in_turn() -> None:
    spec = replace(small("ecmp", "rps", "caps"), repeats=2)
    assert settled(simulate_document(spec, cores=4)[0]) == settled(simulate_document(spec, cores=1)[0])


def test_agents_clocks_go_faster_where_a_packet_takes_less_than_in_a_lab() -> None:
    spec = small("ecmp")
    link = Link(rate_mbps=1000)
    fast = replace(spec, fabric=replace(spec.fabric, link=link, access=link))
    document, _ = simulate_document(fast)
    clock = document["simulation"]["agent_clock"]
    assert clock * fast.packet_time_s == pytest.approx(0.0006)
    assert f"Agents' clocks go {clock:g} times faster than time" in "\n".join(document["notices"])
    assert "clocks" not in "\n".join(simulate_document(spec)[0]["notices"])


def test_progress_counts_every_run_and_flow_and_ends_complete() -> None:
    steps: list[Step] = []
    spec = replace(small(), repeats=2)
    simulate_document(spec, steps.append, cores=2)
    flows = 2 * sum(len(spec.plan(repeat).sized) for repeat in range(2))
    assert {(step.runs, step.flows) for step in steps} == {(4, flows)}
    assert [step.runs_done for step in steps] == sorted(step.runs_done for step in steps)
    last = steps[-1]
    assert (last.runs_done, last.finished, last.left_s) == (4, flows, 0.0)


@pytest.mark.parametrize("scheme", ["repflow", "repsyn"])
def test_progress_counts_a_flow_and_its_copy_once(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulation.spec_run._EVENTS_A_STEP", 100)
    steps: list[Step] = []
    spec = small(scheme)
    simulate_document(spec, steps.append)
    flows = len(spec.plan(0).sized)
    assert len({step.finished for step in steps}) > 2
    assert all(step.finished <= step.flows == flows for step in steps)
    assert all(step.left_s is None or step.left_s >= 0 for step in steps)


def test_the_time_left_follows_from_the_share_that_has_ended() -> None:
    assert left_s(10.0, 0.0) is None
    assert left_s(10.0, 0.25) == 30.0
    step = Step("load 0.4", "caps", 3, 8, 2, 25, 100, 10.0, 30.0)
    assert step_line(step, datetime(2026, 1, 1, 12, 0, 0)) == (
        "run 3 of 8 (load 0.4, caps): 25 of 100 flows have ended, 30 s left, until 12:00:30"
    )


def test_runs_that_are_there_already_are_not_simulated_again() -> None:
    spec = replace(small(), repeats=2)
    whole, runs = simulate_document(spec)
    recorded: list[tuple[str, int]] = []

    def on_run(run: Run) -> Run:
        recorded.append((run.label, run.repeat))
        return run

    document, _ = simulate_document(spec, finished=runs[1:], on_run=on_run)
    assert recorded == [("ecmp", 0)]
    assert settled(document) == settled(whole)


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupt_leaves_nothing_half_written(tmp_path: Path, after: int) -> None:
    def interrupt(step: Step) -> None:
        if step.runs_done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_sweep(loads(), "text", tmp_path / "results", on_step=interrupt)
    assert not list(tmp_path.rglob("*"))


def test_a_result_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        simulate_spec(small(), "\ud800", tmp_path)  # half of a character, which no file takes
    assert not list(tmp_path.iterdir())


def test_closing_the_iterator_ends_all_runs() -> None:
    begun: set[int] = set()
    runs = simulate([prepare(replace(small(), repeats=20))], lambda step: begun.add(step.run), cores=2)
    next(runs)
    runs.close()
    assert max(begun) < 40


def test_what_a_point_cannot_do_is_said_with_the_point(tmp_path: Path) -> None:
    axis = Axis("rate", ("fabric.link.rate_mbps",), (5, None))
    with pytest.raises(SettingsError, match=r"^rate = None: fabric.link.rate_mbps: "):
        simulate_sweep(replace(small(), sweep=(axis,)), "text", tmp_path)


def test_a_simulated_experiment_is_listed_with_runs_and_flows(tmp_path: Path) -> None:
    arguments = ["simulate", "small", "--scheme", "ecmp", "--scheme", "caps", "--results", str(tmp_path)]
    ran = CliRunner().invoke(capstan, arguments, catch_exceptions=False)
    assert ran.exit_code == 0
    assert "and as experiment 1" in ran.output
    assert "idle" not in ran.output
    (directory,) = tmp_path.glob("small-*")
    document, records = read_result(directory)
    assert not [*tmp_path.glob(".*"), *directory.glob(".*")]

    engine = open_database(f"sqlite:///{tmp_path / 'capstan.db'}")
    store = ExperimentStore(engine)
    (listed,) = store.page(PageQuery(10))[0]
    assert (listed["simulated"], listed["state"], listed["kind"]) == (True, "finished", "recorded")
    kept = store.experiment(1)
    assert kept["summary"] == document
    assert {run["label"]: run["cpu"] for run in kept["runs"]} == {"ecmp": {}, "caps": {}}
    caps = next(run for run in kept["runs"] if run["label"] == "caps")
    assert len(store.modes(1, caps["id"])) == document["schemes"]["caps"]["mode_changes"] > 0
    flows = list(store.all_flows(1, None))
    assert len(flows) == len(records)
    engine.dispose()


def test_a_sweep_is_an_experiment_a_point_and_marked_in_its_document(tmp_path: Path) -> None:
    spec_file = tmp_path / "loads.yaml"
    preset = Path("experiments/presets/small.yaml").read_text(encoding="utf-8")
    axis = "sweep:\n  - {label: load, fields: [workload.flows.arrivals.rate_per_s], values: [6, 12]}\n"
    spec_file.write_text(preset + axis, encoding="utf-8")
    arguments = [
        "simulate",
        str(spec_file),
        "--scheme",
        "ecmp",
        "--results",
        str(tmp_path / "r"),
        "--json",
        "-",
    ]
    ran = CliRunner().invoke(capstan, arguments, catch_exceptions=False)
    document = json.loads(ran.stdout)
    assert (document["kind"], document["simulated"]) == ("sweep", True)
    assert "as experiment 1 to 2" in ran.stderr


def test_a_database_that_refuses_keeps_the_files_and_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "capstan.db").write_text("no database", encoding="utf-8")
    ran = CliRunner().invoke(
        capstan, ["simulate", "small", "--scheme", "ecmp", "--results", str(tmp_path)], catch_exceptions=False
    )
    assert ran.exit_code == 1
    (directory,) = tmp_path.glob("small-*")
    assert f"kept in {directory}, but not as an experiment: database" in ran.stderr


def test_experiments_are_kept_all_or_none(tmp_path: Path) -> None:
    spec = small("ecmp")
    _, (run,) = simulate_document(spec)
    body = run_body(run, spec.seed, 1e9) | {"mode_events_complete": True}
    flows = body.pop("flows")
    whole = FinishedExperiment("a", 1, {}, {}, {}, 1e9, 2e9, {}, True, [FinishedRun(body, flows, [])])
    twice = replace(whole, runs=[*whole.runs, *whole.runs])
    engine = open_database(f"sqlite:///{tmp_path / 'capstan.db'}")
    with pytest.raises(Exception, match="UNIQUE"):
        keep_finished(engine, [whole, twice])
    assert ExperimentStore(engine).page(PageQuery(10))[0] == []
    assert keep_finished(engine, [whole]) == [1]
    engine.dispose()


def test_a_report_of_a_simulation_says_so_and_how_to_repeat_it(tmp_path: Path) -> None:
    result = simulate_spec(small(), "text", tmp_path)
    write_report(result.directory, tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "**Simulated, packet by packet" in text
    assert "./capstan simulate spec.yaml --seed 1" in text
    assert "idle" not in text


def test_a_simulation_names_its_own_tcp_and_not_the_labs() -> None:
    spec = replace(small(), simulation=replace(small().simulation, congestion_control="newreno"))
    document, _ = simulate_document(spec)
    text = "\n".join(notes(document))
    assert "with newreno" in text
    assert "cubic" not in text
