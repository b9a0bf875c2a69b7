"""Classroom labs: solutions pass their checks, files to start from fail them, and a wrong file gets the place."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from classroom import collisions, mode_time, own_path, repairs
from classroom.answer import AnswerError
from classroom.labs import DIRECTORY, LABS, ClassroomLab
from classroom.marks import item_of
from cli.app import capstan
from controller.modes.monitor import ModeMonitor
from controller.schemes.scheme import ModeRule
from host_agent.coding.codes import code_named

WITHOUT_LAB = [lab for lab in LABS.values() if lab.number != 1]  # lab 1 asks for a result: tests/lab


@pytest.mark.parametrize("lab", WITHOUT_LAB, ids=lambda lab: lab.folder)
def test_solutions_pass_and_starters_fail(lab: ClassroomLab, tmp_path: Path) -> None:
    assert all(one.right for one in lab.check(lab.solution, tmp_path))
    start = lab.check(lab.directory / lab.start, tmp_path)
    assert any(not one.right for one in start)


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.folder)
def test_no_two_items_of_a_lab_have_the_same_name(lab: ClassroomLab, tmp_path: Path) -> None:
    """Gradescope takes them for one test."""
    for file in (lab.solution, lab.directory / lab.start):
        items = [item_of(finding.text) for finding in lab.check(file, tmp_path)]
        assert sorted(set(items)) == sorted(items)


def test_lab_1_wants_a_result(tmp_path: Path) -> None:
    found = LABS[1].check(LABS[1].solution, tmp_path)
    assert [one.right for one in found] == [True, False, True]
    assert "run the experiment first" in found[1].text


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("[flow.update(paths=flow['paths'].split()) for flow in flows]\n    return right(flows)", True),
        ("flows.clear()\n    return []", False),
    ],
    ids=["changes what it was given", "empties what it was given"],
)
def test_lab_1_compares_with_the_tables_as_they_were(tmp_path: Path, body: str, right: bool) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"CHANCE = 0.90625\n\ndef collisions(flows):\n    {body}\n" + _RIGHT_OF_WORDS)
    assert LABS[1].check(file, tmp_path)[0].right is right


_RIGHT_OF_WORDS = """

def main_path(flow):
    return max(flow["paths"], key=lambda word: int(word.split(":")[1])).split(":")[0]

def right(flows):
    return [
        (a["id"], b["id"])
        for n, a in enumerate(flows)
        for b in flows[n + 1:]
        if (a["repeat"], main_path(a)) == (b["repeat"], main_path(b))
    ]
"""


@pytest.mark.parametrize("given", ["[1, 2]", "numpy.array([1, 2])"])
def test_lab_1_says_what_collisions_has_to_give(tmp_path: Path, given: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"import numpy\nCHANCE = 0.90625\ndef collisions(flows):\n    return {given}\n")
    with pytest.raises(AnswerError, match=r"gives .*: pairs of ids are wanted"):
        LABS[1].check(file, tmp_path)


def test_lab_1_leaves_flows_out_that_took_no_path(tmp_path: Path) -> None:
    own = tmp_path / "lab1-20261122-101500" / "flows.csv"
    own.parent.mkdir()
    own.write_text(
        "id,repeat,traffic_class,paths\n1,0,long,2049:9 2050:1\n2,0,long,\n3,0,long,2049:8\n4,0,short,\n"
    )
    found = LABS[1].check(LABS[1].solution, tmp_path)
    assert [finding.right for finding in found] == [True, True, True]
    assert "you find 1 and 3" in found[1].text


@pytest.mark.parametrize(
    "chance", ["numpy.float64(0.90625)", "1 - numpy.prod([1, 3/4, 1/2, 1/4])", "Fraction(29, 32)"]
)
def test_lab_1_takes_any_kind_of_number(tmp_path: Path, chance: str) -> None:
    file = tmp_path / "mine.py"
    head = f"import numpy\nfrom fractions import Fraction\nCHANCE = {chance}\n"
    file.write_text(f"{head}def collisions(flows):\n    return []\n")
    last = LABS[1].check(file, tmp_path)[-1]
    assert json.loads(json.dumps(last.right)) is True


def test_lab_1_says_what_is_no_table_of_flows(tmp_path: Path) -> None:
    own = tmp_path / "lab1-20261122-101500" / "flows.csv"
    own.parent.mkdir()
    own.write_text("scheme;repeat;id;traffic_class;paths\necmp;0;1;long;2049:9\n")
    found = LABS[1].check(LABS[1].solution, tmp_path)
    assert [finding.right for finding in found] == [True, False, True]
    assert "is no table of flows" in found[1].text


def test_lab_2_counts_no_docstring_as_code(tmp_path: Path) -> None:
    solution = LABS[2].solution.read_text()
    words = "\n".join(["    words of a docstring"] * own_path.MOST_LINES)
    file = tmp_path / "mine.py"
    file.write_text(f'"""\n{words}\n"""\n{solution}')
    assert LABS[2].check(file, tmp_path)[0].text == LABS[2].check(LABS[2].solution, tmp_path)[0].text


@pytest.mark.parametrize(
    ("type_of", "said"),
    [
        ("[1]", r"gave \[1\] as the type of port \d+: a number or a name is wanted"),
        ("{'a': 1}", "a number or a name is wanted"),
    ],
)
def test_lab_5_says_what_a_type_has_to_be(tmp_path: Path, type_of: str, said: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        f"def types_of_ports(flows):\n    return {{f['destination_port']: {type_of} for f in flows}}\n"
    )
    with pytest.raises(AnswerError, match=said):
        LABS[5].check(file, tmp_path)


@pytest.mark.parametrize("type_of", ["None", "float('nan')", "None if f['host'] == 'h1' else 'x'"])
def test_lab_5_marks_types_of_any_kind(tmp_path: Path, type_of: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        f"def types_of_ports(flows):\n    return {{f['destination_port']: {type_of} for f in flows}}\n"
    )
    assert not LABS[5].check(file, tmp_path)[0].right


def test_a_lab_has_all_its_parts() -> None:
    index = (DIRECTORY / "README.md").read_text()
    guide = (DIRECTORY / "instructor.md").read_text()
    for lab in LABS.values():
        text = (lab.directory / "README.md").read_text()
        assert f"({lab.folder}/README.md)" in index
        for part in ("**Goal.**", "## Steps", "## Questions", "## What you should see"):
            assert part in text
        assert lab.solution.is_file()
        assert f"(solutions/{lab.solution.name})" in guide
        steps = [line for line in text.splitlines() if line[:1].isdigit() and line[1:3] == ". "]
        assert 5 <= len(steps) <= 10
        assert f"lab-check {lab.number} " in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def repairs(k, blocked, target)\n    return 1\n", "line 1"),
        ("def repairs(k, blocked, target):\n    return k / 0\n", "line 2: ZeroDivisionError"),
        ("def repair(k, blocked, target):\n    return 1\n", "defines no repairs"),
        ("def repairs(k, blocked, target):\n    return 2.5\n", "gave 2.5"),
        ("import sys\nsys.exit()\n", "line 2: SystemExit"),
        ("def repairs(k, blocked, target):\n    raise SystemExit(0)\n", "line 2: SystemExit"),
    ],
)
def test_a_file_that_fails_gets_the_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(AnswerError, match=said):
        LABS[3].check(file, tmp_path)


def test_the_chance_of_lab_1_is_counted() -> None:
    ways = list(itertools.product(range(4), repeat=4))
    assert sum(len(set(way)) < 4 for way in ways) / len(ways) == collisions.CHANCE


def test_the_truth_of_lab_3_is_what_a_code_does() -> None:
    rng = np.random.default_rng(5)
    blocked = rng.random((200_000, 16)) < 0.2
    assert repairs.decode_probability(10, 6, 0.2) == pytest.approx(np.mean(blocked.sum(1) <= 6), abs=0.003)
    assert repairs.least_repairs(10, 0.2, 0.95) == 6
    assert len(
        code_named("mds").encode([b"x"] * 32, repairs.least_repairs(32, 0.2, 0.95), 0)
    ) == repairs.least_repairs(32, 0.2, 0.95)


def test_lab_4_plays_the_controllers_own_monitor() -> None:
    rule = ModeRule(sampling_packet_times=20)
    played = mode_time.play(rule)
    assert played.changes == 2.0
    # OFF comes T to 4 T and a read after the last packet (the monitor doubles T where silences are short).
    t_s = ModeMonitor(rule, mode_time.PACKET_TIME_S).sampling_time_s
    _, silences = mode_time.arrivals()
    silent_s = sum(end - begin for begin, end in silences)
    least, most = (
        sum(max(0.0, end - begin - hold_s) for begin, end in silences) / silent_s
        for hold_s in (4 * t_s + 0.02, t_s)
    )
    assert least < played.off_share < most


def run(*words: str) -> int:
    """Run the command line and return its exit code."""
    try:
        capstan(list(words), prog_name="capstan", standalone_mode=False)
    except SystemExit as leave:
        return int(leave.code or 0)
    return 0


def test_the_command_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("lab-check", "3", str(LABS[3].directory / "start.py")) == 1
    assert "MISSING  steps 4 to 6, k = 10, 20% blocked: r = 3 decodes 0.747" in capsys.readouterr().out
    assert run("lab-check", "3", str(LABS[3].solution)) == 0
    assert "lab 3: nothing is missing" in capsys.readouterr().out
    assert run("lab-check") == 0
    assert "Predict priorities" in capsys.readouterr().out
    assert run("lab-check", "2") == 2
    assert "docs/labs/2-path-policy/start.py" in capsys.readouterr().err


_ENDLESS = """
def work():
    pass

def repairs(k, blocked, target):
    while True:
        try:
            work()
        except {caught}:
            pass
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("caught", ["ValueError", "Exception", "BaseException"])
def test_a_loop_without_an_end_is_ended_whatever_it_catches(tmp_path: Path, caught: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(_ENDLESS.format(caught=caught))
    check = (
        "import sys; from cli.app import main; from cli.commands import lab_check as command; "
        "command.MOST_S = command.AGAIN_S = 0.5; sys.argv = ['capstan', 'lab-check', '3', sys.argv[1]]; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", check, str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "capstan: your file takes longer than 60 s: is there a loop without an end?\n"
