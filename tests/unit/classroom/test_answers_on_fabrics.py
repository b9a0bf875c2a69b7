"""Answers of labs 3 to 5 on a fabric: schemes with a student's r and T, and types of the flows of a run."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from classroom.labs import DIRECTORY, LABS
from cli.specs import load_spec
from controller.schemes import loader

SCHEME = DIRECTORY / LABS[3].folder / "scheme.py"
TYPES = DIRECTORY / LABS[5].folder / "types_of_run.py"


def run(program: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a lab's program as its sheet says: without Capstan on the path of Python's modules."""
    command = [sys.executable, str(program), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={})


@pytest.mark.parametrize(("answer", "r"), [(LABS[3].directory / "start.py", 3), (LABS[3].solution, 6)])
def test_lab_3_an_r_of_ones_own_is_a_scheme(answer: Path, r: int, tmp_path: Path) -> None:
    """The paper's 3, and 6: for k = 10 of which each is blocked with probability 0.2."""
    file = tmp_path / "my-r.yaml"
    file.write_text(run(SCHEME, answer).stdout)
    coding = loader.load(file).short.coding
    assert coding is not None
    assert (coding.max_k, coding.max_r) == (10, r)
    assert coding.max_overhead * coding.max_k == pytest.approx(r)  # neither bound is tighter than the other
    assert load_spec("small", ("caps", str(file)), lab=True).spec.schemes[1].label == "my-r"


def test_lab_3_two_schemes_of_ones_own_run_side_by_side(tmp_path: Path) -> None:
    """Both are called my-r in their files: their files' names distinguish them."""
    files = [tmp_path / "paper-r.yaml", tmp_path / "my-r.yaml"]
    for file, answer in zip(files, (LABS[3].directory / "start.py", LABS[3].solution), strict=True):
        file.write_text(run(SCHEME, answer).stdout)
    spec = load_spec("small", tuple(map(str, files))).spec
    assert [choice.label for choice in spec.schemes] == ["paper-r", "my-r"]


def test_two_schemes_that_nothing_distinguishes_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = tmp_path / "caps.yaml"
    edited.write_text(loader.source("caps"))
    for twice in (("caps", str(edited)), ("ecmp", "ecmp")):
        with pytest.raises(SystemExit) as ended:
            load_spec("small", twice)
        assert ended.value.code == 2
        assert f"another scheme is called '{twice[0]}', too" in capsys.readouterr().err


@pytest.mark.parametrize("r", ["0", "65", "-1"])
def test_lab_3_says_which_r_a_scheme_cannot_have(r: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"def repairs(k, blocked, target):\n    return {r}\n")
    done = run(SCHEME, file)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"gave {r}: a scheme takes 1 to 64" in done.stderr


@pytest.mark.parametrize(
    "file", [LABS[4].directory / LABS[4].start, LABS[4].solution], ids=["start", "solution"]
)
def test_lab_4_compares_caps_with_a_scheme_that_differs_in_t_alone(file: Path) -> None:
    mine, caps = loader.load(file), loader.load("caps")
    assert mine.mode is not None
    assert mine.mode != caps.mode
    assert (mine.short, mine.long, mine.control) == (caps.short, caps.long, caps.control)
    assert mine.prior_knowledge == caps.prior_knowledge


def table(directory: Path, *rows: tuple[str, int, int, str]) -> Path:
    """Write a table of flows (application, port, bytes, state), with the columns that matter."""
    file = directory / "flows.csv"
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(("source", "application", "port", "size_bytes", "state"))
        writer.writerows(("h1", *row) for row in rows)
    return file


@pytest.mark.slow
def test_lab_5_types_are_of_the_ports_of_a_run(tmp_path: Path) -> None:
    flows = table(
        tmp_path,
        ("rpc", 5601, 2000, "finished"),
        ("rpc-too", 5602, 2100, "finished"),
        ("storage", 5605, 200_000, "finished"),
        ("storage", 5605, 300_000, "finished"),
        ("storage", 5605, 9, "failed"),
    )
    done = run(TYPES, flows, LABS[5].solution)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[:4] for row in rows] == [
        ["5601", "rpc", "1", "2000"],
        ["5602", "rpc-too", "1", "2100"],
        ["5605", "storage", "2", "250000"],
    ]
    kinds = [row[4] for row in rows]
    assert kinds[0] == kinds[1] != kinds[2]


def test_lab_5_a_table_without_finished_flows_is_an_error(tmp_path: Path) -> None:
    done = run(TYPES, table(tmp_path, ("rpc", 5601, 2000, "failed")), LABS[5].solution)
    assert done.returncode == 1
    assert "no flow in it has finished" in done.stderr


def test_lab_5_of_several_runs_the_newest_counts(tmp_path: Path) -> None:
    tables = []
    for at_s, size in ((1_000_020, 3000), (1_000_000, 2000)):
        directory = tmp_path / f"lab5-{at_s}"
        directory.mkdir()
        tables.append(table(directory, ("rpc", 5601, size, "finished")))
        os.utime(tables[-1], (at_s, at_s))
    done = run(TYPES, *tables, LABS[5].directory / LABS[5].start)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split() == ["5601", "rpc", "1", "3000", "5601"]


def test_lab_5_without_a_run_is_one_line(tmp_path: Path) -> None:
    done = run(TYPES, tmp_path / "lab5-*" / "flows.csv", LABS[5].directory / LABS[5].start)
    assert done.returncode == 1
    assert "there is no such table: run lab5.yaml first" in done.stderr
    assert "Traceback" not in done.stderr


def test_lab_5_its_experiment_has_ports_of_three_sizes() -> None:
    flows = load_spec(str(DIRECTORY / LABS[5].folder / "lab5.yaml"), (), lab=True).spec.workload.flows
    assert flows is not None
    sizes = {application.port: application.sizes for application in flows.applications}
    assert len(sizes) == 5
    assert len({str(size) for size in sizes.values()}) == 3
