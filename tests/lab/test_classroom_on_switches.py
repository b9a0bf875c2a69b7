"""Classroom labs 1, 2, 6 and 7 as a student does them: on real switches, with the commands of their sheets."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from classroom.killed_parts import measure, read_log
from classroom.labs import LABS
from cli.specs import load_spec
from experiments.run.deployment import Deployment
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]


def capstan(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cli", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def long_flows(results: Path, name: str) -> list[dict[str, str]]:
    [table] = results.glob(f"{name}-*/flows.csv")
    rows = csv.DictReader(table.read_text().splitlines())
    return [row for row in rows if row["traffic_class"] == "long"]


def test_lab_1_its_solution_finds_what_really_collided(tmp_path: Path) -> None:
    lab = LABS[1]
    place = ["--results", str(tmp_path)]
    ran = capstan("run", f"docs/labs/{lab.folder}/lab1.yaml", "--repeats", "1", *place)
    assert ran.returncode == 0, ran.stderr
    assert len(long_flows(tmp_path, "lab1")) == 4
    solved = capstan("lab-check", "1", str(lab.solution), *place)
    assert solved.returncode == 0, solved.stdout + solved.stderr
    assert "nothing is missing" in solved.stdout
    begun = capstan("lab-check", "1", str(lab.directory / lab.start), *place)
    assert begun.returncode == 1
    assert "lab 1: " in begun.stdout


def test_lab_2_a_policy_of_ones_own_runs_on_switches(tmp_path: Path) -> None:
    lab = LABS[2]
    spec = f"docs/labs/{lab.folder}/lab2.yaml"
    words = ("--repeats", "1", "--path-policy", str(lab.solution), "--results", str(tmp_path))
    ran = capstan("run", spec, *words)
    assert ran.returncode == 0, ran.stderr
    paths = {
        scheme: [len(row["paths"].split()) for row in long_flows(tmp_path, "lab2") if row["scheme"] == scheme]
        for scheme in ("ecmp", "mine")
    }
    assert paths["mine"] == [8, 8, 8, 8]
    assert max(paths["ecmp"]) < 8  # 1, unless a link went meanwhile


def test_a_scheme_that_wants_a_file_says_so_where_there_is_none(tmp_path: Path) -> None:
    mine = f"./docs/labs/{LABS[2].folder}/mine.yaml"
    ran = capstan("run", "small", "--scheme", mine, "--results", str(tmp_path))
    assert ran.returncode == 2
    assert "mine.yaml: has `entropy: file`: give your file with --path-policy FILE" in ran.stderr


def test_a_policy_that_fails_ends_the_run_with_its_line(tmp_path: Path) -> None:
    mine = f"./docs/labs/{LABS[2].folder}/mine.yaml"
    text = LABS[2].solution.read_text().replace("return label\n", "return label / 0\n")
    file = tmp_path / "wrong.py"
    file.write_text(text)
    line = text.splitlines().index("        return label / 0") + 1
    ran = capstan("run", "small", "--scheme", mine, "--path-policy", str(file), "--results", str(tmp_path))
    assert ran.returncode == 1
    assert f"wrong.py, line {line}: ZeroDivisionError" in ran.stderr


@pytest.fixture(scope="module")
def small() -> Iterator[Deployment]:
    with Deployment(load_spec("small", ("rps",)).spec, queue=True) as made:  # as `capstan lab` has it
        yield made


def test_lab_7_the_solution_acts_by_rest_on_what_the_stream_says(small: Deployment) -> None:
    before = small.client.scheme()
    assert before["base"] == "rps"
    command = [sys.executable, str(LABS[7].solution), small.client.url]
    application = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        slow = small.client.begin_fault("slow-link", "l1-s1", rate_mbps=0.5)
        eventually(lambda: [fault["kind"] for fault in small.client.faults()] == ["slow-link", "link-down"])
        assert small.client.faults()[1]["target"] == "l1-s1"
        eventually(lambda: small.client.scheme()["base"] == "ecmp")  # the fabric is idle
        assert small.client.scheme()["packet_time_us"] == before["packet_time_us"]
        assert application.poll() is None
    finally:
        application.kill()
        application.wait()
    small.client.end_fault(small.client.faults()[1]["id"])
    small.client.end_fault(slow["id"])
    small.client.set_scheme("rps", before["packet_time_us"] / 1e6)


def test_lab_6_measures_what_goes_on_without_a_part(small: Deployment, tmp_path: Path) -> None:
    program = LABS[6].directory / "measure.py"
    log = tmp_path / "lab6-1" / "log.csv"
    command = [sys.executable, str(program), small.lab.lab_id, str(log)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=300)
    outages = measure(read_log(log), log)
    assert outages["controller"].pings_lost == 0
    assert outages["controller"].api_silent_s > 0
    assert outages["agent"].pings_lost > 0
    assert outages["switch"].pings_lost > 0
