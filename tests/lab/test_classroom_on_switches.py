"""Classroom labs as a student does them: on real switches, with the commands of their sheets, rightly and wrongly."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from classroom.killed_parts import measure, read_log
from classroom.labs import LABS
from classroom.marks import item_of
from cli.specs import load_spec
from controller.schemes import loader
from experiments.run.deployment import Deployment
from experiments.spec.spec import SchemeChoice
from plain.yaml_source import read
from tests.unit.classroom.test_wrong_answers import MISSED, WRONG
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
IPERF_PORT = 5201


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


def missed(file: Path, results: Path) -> set[str]:
    """Return the items of a lab's check that are not right in an answer named by its lab, as lab1-mine.py."""
    return {item_of(item.text) for item in LABS[int(file.name[3])].check(file, results) if not item.right}


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
    for name in ("lab1-all-runs.py", "lab1-first-path.py", "lab1-one-pair.py"):
        assert MISSED[name] <= missed(WRONG / name, tmp_path) <= MISSED[name] | {"step 5"}


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
    wrong = tmp_path / "wrong"
    mine = ("--scheme", f"./docs/labs/{lab.folder}/mine.yaml")
    words = (
        "--repeats",
        "1",
        "--path-policy",
        str(WRONG / "lab2-packet-by-packet.py"),
        "--results",
        str(wrong),
    )
    ran = capstan("run", spec, *mine, *words)
    assert ran.returncode == 0, ran.stderr
    assert reordered(wrong) > reordered(tmp_path)


def reordered(results: Path) -> float:
    """Return the share of packets of long flows that a path policy of one's own had overtaken, before their release."""
    rows = [row for row in long_flows(results, "lab2") if row["scheme"] == "mine"]
    return sum(int(row["reordered"]) for row in rows) / sum(int(row["packets"]) for row in rows)


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


@contextmanager
def running(application: Path, small: Deployment) -> Iterator[None]:
    """Run an application of lab 7 on the lab; end it, its faults and its scheme afterwards."""
    before = small.client.scheme()
    command = [sys.executable, str(application), small.client.url]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        for fault in reversed(small.client.faults()):
            small.client.end_fault(fault["id"])
        small.client.set_scheme(before["base"], packet_time_s=before["packet_time_us"] / 1e6)
        small.wait_whole()


def faults(small: Deployment) -> list[tuple[str, str]]:
    return [(fault["kind"], fault["target"]) for fault in small.client.faults()]


def test_lab_7_the_solution_acts_by_rest_on_what_the_stream_says(small: Deployment) -> None:
    before = small.client.scheme()
    assert before["base"] == "rps"
    with running(LABS[7].solution, small):
        eventually(lambda: small.client.scheme()["base"] == "ecmp")  # the fabric is idle
        assert faults(small) == []
        small.client.begin_fault("slow-link", "l1-s1", rate_mbps=0.5)
        eventually(lambda: faults(small) == [("slow-link", "l1-s1"), ("link-down", "l1-s1")])
        assert small.client.scheme()["packet_time_us"] == before["packet_time_us"]
    assert faults(small) == []


def test_lab_7_an_application_that_takes_idle_for_slow_takes_out_a_link_of_full_rate(
    small: Deployment,
) -> None:
    with running(WRONG / "lab7-idle-is-slow.py", small):
        eventually(lambda: "link-down" in dict(faults(small)))


def listens(small: Deployment, host: str, port: int) -> bool:
    """Return whether a program on *host* takes connections at a TCP port."""
    show = small.lab.popen(host, ["ss", "-Hltn", f"sport = :{port}"], stdout=subprocess.PIPE, text=True)
    return bool(show.communicate()[0].strip())


def changes_of(small: Deployment, leaf: str, cursor: int) -> list[dict[str, Any]]:
    """Return the changes of a leaf's mode since *cursor*."""
    return [change for change in small.client.modes(cursor)[0] if change["leaf"] == leaf]


def test_lab_4_a_leaf_is_on_during_a_transfer_and_off_a_t_after_it(small: Deployment) -> None:
    """Step 3, with the solution's T and with one that is too long."""
    before = small.client.scheme()
    held_s = {}
    for file in (LABS[4].solution, WRONG / "lab4-too-short.yaml", WRONG / "lab4-too-long.yaml"):
        small.set_scheme(SchemeChoice(str(file)))
        eventually(lambda: set(small.client.leaf_modes().values()) == {"off"})
        _, cursor = small.client.modes()
        assert (
            capstan("exec", "--lab", small.lab.lab_id, "h3", "--", "iperf3", "-s", "-1", "-D").returncode == 0
        )
        # what started it has ended before it listens
        eventually(lambda: listens(small, "h3", IPERF_PORT), "iperf3 listens")
        sent = capstan("exec", "--lab", small.lab.lab_id, "h1", "--", "iperf3", "-c", "h3", "-n", "50K")
        assert sent.returncode == 0, sent.stdout + sent.stderr
        eventually(lambda cursor=cursor: changes_of(small, "l1", cursor), f"{file}: a mode has changed")
        eventually(lambda: set(small.client.leaf_modes().values()) == {"off"})
        changes = changes_of(small, "l1", cursor)
        assert [change["mode"] for change in changes] == ["on", "off"] * (len(changes) // 2)
        rule = loader.load(file).mode
        assert rule is not None
        t_s = rule.sampling_packet_times * small.spec.packet_time_s
        on_s = [off["at"] - on["at"] for on, off in zip(changes[::2], changes[1::2], strict=True)]
        assert on_s, f"{file}: no mode changed"
        assert min(on_s) >= 0.9 * t_s
        held_s[file.name] = max(on_s)
    small.client.set_scheme(before["base"], packet_time_s=before["packet_time_us"] / 1e6)
    assert held_s["lab4-too-long.yaml"] > held_s[LABS[4].solution.name]


def answer_with_own_log(outages: dict[str, Any]) -> dict[str, Any]:
    """Return the solution of lab 6 with what its own log says."""
    answer: dict[str, Any] = read(LABS[6].solution.read_text(), "solution").data | {"log": "own"}
    for part, outage in outages.items():
        answer["measurements"][part] |= {
            "pings_lost": outage.pings_lost,
            "flows_failed": outage.flows_failed,
        }
    answer["measurements"]["controller"]["api_silent_s"] = round(outages["controller"].api_silent_s, 2)
    return answer


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
    mine = tmp_path / "lab6-mine.yaml"
    answer = answer_with_own_log(outages)
    mine.write_text(yaml.safe_dump(answer))
    assert missed(mine, tmp_path) == set()
    for part, step in (("controller", "step 6"), ("agent", "step 7"), ("switch", "step 8")):
        right = answer["measurements"][part]["flows_failed"]
        answer["measurements"][part]["flows_failed"] = right + 1
        mine.write_text(yaml.safe_dump(answer))
        assert missed(mine, tmp_path) == {step}
        answer["measurements"][part]["flows_failed"] = right
