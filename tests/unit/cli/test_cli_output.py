"""Output of commands, whatever takes it, and options that say nothing without another."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cli import lab_runs
from cli.commands.bench import BENCHMARKS
from experiments.run.experiment import Result
from experiments.spec.check import find_spec
from tests.unit.cli.command_line import InProcess
from tests.unit.cli.test_cli_commands import start
from topologies.namespaces import ProgramMissingError


@pytest.mark.slow
def test_standard_output_takes_any_letter_and_json_is_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "größe → 5 µs.yaml"
    file.write_text(find_spec("small").read_text().replace("title: ", "title: µ → "))
    ascii_only = {"PYTHONIOENCODING": "ascii"}  # as where output goes to a file on Windows
    checked = start("check", str(file), **ascii_only)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "\\u2192 5 \\xb5s.yaml: nothing wrong" in checked.stdout
    results = ["--results", str(tmp_path), "--scheme", "ecmp", "--repeats", "1"]
    simulated = start("simulate", str(file), *results, "--json", "-", **ascii_only)
    assert simulated.returncode == 0, simulated.stderr
    assert json.loads(simulated.stdout)["title"].startswith("µ → ")


@pytest.mark.parametrize("option", ["--record-from", "--record-for"])
def test_a_window_to_record_needs_record(option: str, capstan_says: InProcess) -> None:
    done = capstan_says("submit", "small", option, "100", "--api", "http://127.0.0.1:1")
    assert done.returncode == 2
    assert f"{option} is of what --record records: give --record, too" in done.stderr


def test_results_that_cannot_be_kept_are_an_error_before_they_are_simulated(
    tmp_path: Path, capstan_says: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.simulated_spec.simulate_spec", None)
    file = tmp_path / "results"
    file.write_text("no directory")
    for results in (file, file / "below"):
        done = capstan_says("simulate", "small", "--results", str(results))
        assert (done.returncode, done.stdout) == (2, "")
        assert f"--results {results}: {file} is not a directory" in done.stderr


def test_evidence_that_cannot_be_written_is_an_error_at_once(tmp_path: Path, capstan_says: InProcess) -> None:
    done = capstan_says("evidence", "--preset", "small", "--output", str(tmp_path / "no" / "x.md"))
    assert done.returncode == 2
    assert "there is no directory" in " ".join(done.stderr.split())


def test_evidence_without_a_claim_leaves_the_document_as_it_is(
    tmp_path: Path, capstan_says: InProcess
) -> None:
    output = tmp_path / "mine.md"
    output.write_text("kept")
    done = capstan_says("evidence", "--preset", "small", "--output", str(output))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no claim is of these presets and papers: {output} stays as it is" in done.stderr
    assert output.read_text() == "kept"


def test_a_benchmark_that_lacks_a_program_is_named_and_leaves_the_others(
    capstan_says: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> None:
        raise ProgramMissingError("there is no wrk here")

    module = ModuleType("benchmarks.lacking")
    module.__dict__["run"] = run
    monkeypatch.setitem(sys.modules, "benchmarks.lacking", module)
    monkeypatch.setitem(BENCHMARKS, "lacking", "nothing")
    monkeypatch.setattr("cli.commands.bench.WITHOUT_LAB", frozenset({"lacking"}))
    done = capstan_says("bench", "lacking")
    assert done.returncode == 1
    assert "bench lacking: there is no wrk here" in done.stderr
    assert "no figures of lacking (reasons above)" in done.stderr


def test_json_is_written_though_the_reader_of_the_tables_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise SystemExit(1)  # as rich does

    monkeypatch.setattr("cli.lab_runs.tables", lambda document: "")
    monkeypatch.setattr("cli.console.results.print", gone)
    file = tmp_path / "x.json"
    with pytest.raises(SystemExit):
        lab_runs._print(Result({"name": "small"}, tmp_path, 1), str(file))
    assert json.loads(file.read_text()) == {"name": "small"}


def test_show_takes_only_seeds_that_a_spec_may_have(
    capstan_says: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.commands.show.need_lab", lambda command: None)
    done = capstan_says("show", "small", "--seed", "2147483648")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--seed must be 0..2147483647" in done.stderr
