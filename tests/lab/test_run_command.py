"""`capstan run`, `agree` and `show` as processes: what they leave when they are done, and when they are ended."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENCE_S
from topologies.registry import labs

ROOT = Path(__file__).resolve().parents[2]
CALLER = 12345
"""Anybody but root."""
SPEC = """\
name: brief
title: One scheme, a few flows
fabric:
  leaves: 2
  spines: 2
  hosts_per_leaf: 1
  link: {rate_mbps: 10}
  access: {rate_mbps: 20}
schemes: [ecmp]
workload:
  flows:
    count: COUNT
    sizes: {kind: fixed, bytes: 20000}
    arrivals: {rate_per_s: 10}
warm_up_s: 0.2
"""


def start(tmp_path: Path, count: int, command: str = "run", *options: str) -> subprocess.Popen[str]:
    spec = tmp_path / "brief.yaml"
    spec.write_text(SPEC.replace("COUNT", str(count)))
    variables = {"SUDO_UID": str(CALLER), "SUDO_GID": str(CALLER), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "cli", command, str(spec), *options),
            *("--results", str(tmp_path / "new" / "results")),
        ],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def state_of_experiment(tmp_path: Path) -> str:
    database = sqlite3.connect(tmp_path / "new" / "results" / "capstan.db")
    try:
        [(state,)] = database.execute("select state from experiments").fetchall()
    finally:
        database.close()
    return str(state)


def test_results_belong_to_who_called_sudo_and_the_database_is_one_file(tmp_path: Path) -> None:
    process = start(tmp_path, 5, "run", "--json", str(tmp_path / "whole.json"))
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "Completion time of short flows" in out
    results = tmp_path / "new" / "results"
    names = {path.name for path in results.iterdir()}
    assert "capstan.db" in names
    assert not {"capstan.db-wal", "capstan.db-shm"} & names
    made = [results.parent, results, *results.rglob("*"), tmp_path / "whole.json"]
    assert len(made) > 6
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(CALLER, CALLER)}
    assert tmp_path.stat().st_uid == os.getuid(), "what was there before stays as it was"
    assert state_of_experiment(tmp_path) == "finished"


def owners_below(directory: Path) -> set[tuple[int, int]]:
    return {
        (path.stat().st_uid, path.stat().st_gid)
        for path in [directory, *directory.rglob("*")]
        if path.exists()
    }


def test_what_agree_runs_belongs_to_who_called_sudo(tmp_path: Path) -> None:
    process = start(tmp_path, 5, "agree")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert "Lab and simulation" in out, err
    assert owners_below(tmp_path / "new") == {(CALLER, CALLER)}


def test_agree_sizes_what_it_runs_and_compares_with_the_same_simulated(tmp_path: Path) -> None:
    # so slow that what a busy machine adds to a time is little
    process = start(tmp_path, 5, "agree", "--scale", "0.2", "--json", "-")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert "for this machine: " in err
    assert "1 run, about " in err
    (kept,) = (tmp_path / "new" / "results").glob("brief-*/result.json")
    document = json.loads(kept.read_text())
    assert document["spec"]["fabric"]["link"]["rate_mbps"] == 2
    assert any("sized for" in notice for notice in document["notices"])
    figures = {(of["scheme"], of["measure"]): of for of in json.loads(out)["agreements"]}
    short = figures["ecmp", "mean time, short flows"]
    assert 0.5 < short["simulated"]["value"] / short["lab"]["value"] < 2, "of the same links"


def test_show_keeps_its_newest_rounds_and_removes_nothing_else(tmp_path: Path) -> None:
    results = tmp_path / "new" / "results"
    earlier = results / "brief-20200101-000000"
    earlier.mkdir(parents=True)
    (earlier / "result.json").write_text("{}")
    process = start(tmp_path, 5, "show", "--keep-results", "1")
    assert process.stderr is not None
    rounds = 0
    while rounds < 2:
        line = process.stderr.readline()
        assert line, "it ended before its second round did"
        rounds += line.startswith("kept in")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert len(list((results / "rounds").glob("brief-*"))) <= 2, "the newest, and one that was being written"
    assert (earlier / "result.json").read_text() == "{}"
    assert owners_below(results / "rounds") == {(CALLER, CALLER)}


def test_sigterm_takes_the_fabric_down_and_fails_the_experiment(tmp_path: Path) -> None:
    before = {record.lab_id for record in labs()}
    process = start(tmp_path, 500)
    assert process.stderr is not None
    while "repeat 1 of 1" not in (line := process.stderr.readline()):
        assert line, "it ended before it ran"
    ours = {record.lab_id for record in labs() if record.launcher_pid == process.pid}
    assert len(ours) == 1
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert "ended by SIGTERM" in err
    assert not ours & {record.lab_id for record in labs()} - before, "it did not wait to be cleaned up after"
    assert state_of_experiment(tmp_path) == "failed"
    assert not list((tmp_path / "new" / "results").glob("brief-*")), "there is no half result"
