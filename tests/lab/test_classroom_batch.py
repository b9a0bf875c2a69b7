"""A class marked in real sandboxes: right answers pass, and nothing that a submission does leaves its sandbox."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from classroom import marking
from classroom.labs import LABS
from classroom.marking import mark_class
from classroom.sandbox import SCRATCH_BYTES, Limits
from classroom.submissions import read_submissions
from tests.greedy_submissions import BURNS, DEEP, EATS

ROOT = Path(__file__).resolve().parents[2]
WRONG = ROOT / "tests" / "unit" / "classroom" / "wrong_answers"
ATTACKS = {
    "forks": ("import os\nwhile True:\n    os.fork()\n", "BlockingIOError"),
    "fills": ("open('/verdict', 'wb').write(b'0' * 10**8)\n", "File too large"),
    "prints": ("while True:\n    print('x' * 1000)\n", "File too large"),
    "calls": ("import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)\n", "Connection refused"),
    "writes": ("open('/capstan/classroom/labs.py', 'a')\n", "Permission denied"),
    "peeks": (
        "import os\nraise ValueError(os.listdir('/capstan/docs') + os.listdir('/submission'))\n",
        "['lab3.py']",
    ),
    "seeks": ("open('/capstan/.git/HEAD')\n", "No such file"),
    "climbs": ("import os\nos.setuid(0)\n", "PermissionError"),
    "leaves": ("import os\nos._exit(0)\n", "exit code 0"),
}


def test_a_class_is_marked_and_contained(tmp_path: Path) -> None:
    students = tmp_path / "class"
    listener = _listener()
    port = listener.getsockname()[1]
    for name, (text, _) in ATTACKS.items():
        _submit(students, name, 3, text.replace("{port}", str(port)).encode())
    for number in (3, 4, 6, 7):
        _submit(students, "right", number, LABS[number].solution.read_bytes())
    for wrong in ("lab3-mean.py", "lab4-too-short.yaml", "lab6-all-stops.yaml", "lab7-idle-is-slow.py"):
        _submit(students, "wrong", int(wrong[3]), (WRONG / wrong).read_bytes())
    before = (ROOT / "classroom" / "labs.py").read_bytes()
    # A secret of the lecturer's umask: what only its owner may read is read for its submission all the same.
    (students / "right" / "lab3.py").chmod(0o600)
    _submit(students, "right", 1, LABS[1].solution.read_bytes())
    result = students / "right" / "results" / "lab1-20260101-120000"
    result.mkdir(parents=True)
    (result / "flows.csv").write_text(
        "id,repeat,traffic_class,paths\n1,0,long,2049:900\n2,0,long,2049:800 2050:10\n3,0,long,2050:700\n"
    )
    (result.parent / "stolen").symlink_to("/etc")
    result.parent.chmod(0o700)
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "cli",
            "lab-check",
            "--batch",
            str(students),
            "--marks",
            str(tmp_path / "marks"),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        umask=0o077,
    )
    listener.close()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    marks = json.loads((tmp_path / "marks" / "marks.json").read_text())["marks"]
    errors = {mark["student"]: mark["error"] for mark in marks}
    for name, (_, said) in ATTACKS.items():
        assert said in str(errors[name]), (name, errors[name])
    score = {(mark["student"], mark["lab"]): (mark["right"], mark["items"]) for mark in marks}
    assert all(score["right", number][0] == score["right", number][1] > 0 for number in (1, 3, 4, 6, 7))
    assert all(score["wrong", number][0] < score["wrong", number][1] for number in (3, 4, 6, 7))
    assert (ROOT / "classroom" / "labs.py").read_bytes() == before
    for process in Path("/proc").glob("[0-9]*"):
        try:
            assert b"classroom.alone" not in (process / "cmdline").read_bytes()
        except OSError:
            continue


def test_a_loop_without_an_end_is_ended_by_its_processor_time(tmp_path: Path) -> None:
    """The limit is 3 s here: on a busy machine 15 s of it may take longer than the three minutes of a mark."""
    _submit(tmp_path, "loops", 3, b"while True:\n    pass\n")
    (mark,) = mark_class(read_submissions(tmp_path).submissions, 1, limits=Limits(processor_s=3))
    assert "takes more than 3 s of processor time" in str(mark.error)


@pytest.mark.parametrize("grouped", [True, False], ids=["group", "no group"])
def test_all_processes_of_a_submission_share_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grouped: bool
) -> None:
    """Each process alone is within them."""
    if not grouped:
        monkeypatch.setattr(marking, "place_of_groups", lambda: None)
    solution = LABS[3].solution.read_bytes()
    _submit(tmp_path, "burns", 3, BURNS.encode() + solution)
    _submit(tmp_path, "eats", 3, EATS.encode() + solution)
    limits = Limits(processor_s=3, memory=512 << 20)
    marks = mark_class(read_submissions(tmp_path).submissions, 1, limits=limits)
    assert [mark.error for mark in marks] == [
        "takes more than 3 s of processor time: is there a loop without an end?",
        "takes more than 0.5 GiB of memory",
    ]


def test_a_submission_that_makes_folders_without_end_ends_no_other_marking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a directory of this machine they ended the marking of the class when they were to be removed."""
    solution = LABS[3].solution.read_bytes()
    _submit(tmp_path / "class", "ada", 3, solution)
    places = DEEP.replace("PLACES", "('/verdict', '/tmp', '/dev/shm', '/')").encode()
    _submit(tmp_path / "class", "eve", 3, places + solution)
    scratch = Path(tempfile.mkdtemp())
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    marks = mark_class(read_submissions(tmp_path / "class").submissions, 2)
    assert [(mark.submission.student, mark.error) for mark in marks] == [("ada", None), ("eve", None)]
    scratch.rmdir()  # nothing is left in it


WRITES = """
import ctypes, os
written = []
for place in ("/", "/verdict", "/tmp", "/dev/shm", "/dev", "/capstan", "/capstan/docs", "/submission"):
    number = 0
    try:
        for number in range(40):
            with open(f"{place}/own-{number}", "wb") as file:
                file.write(b"0" * (1 << 20))
    except OSError:
        pass
    if number:
        written.append((place, number))
new_user = ctypes.CDLL(None).unshare(0x10000000)
try:
    os.memfd_create("x")
    in_memory = "made"
except OSError:
    in_memory = "refused"
raise ValueError(repr((written, new_user, in_memory)))
"""


def test_a_sandbox_writes_one_file_of_this_machine_and_makes_no_namespaces(tmp_path: Path) -> None:
    _submit(tmp_path, "eve", 3, WRITES.encode())
    (mark,) = mark_class(read_submissions(tmp_path).submissions, 1)
    assert mark.error is not None
    written, new_user, in_memory = ast.literal_eval(
        mark.error.partition("ValueError: ")[2].partition("\n")[0]
    )
    assert written in ([], [("/tmp", SCRATCH_BYTES >> 20)]), "in memory, and of a size"
    assert (new_user, in_memory) == (-1, "refused")


def _submit(students: Path, student: str, number: int, content: bytes) -> None:
    (students / student).mkdir(parents=True, exist_ok=True)
    (students / student / f"lab{number}{Path(LABS[number].start).suffix}").write_bytes(content)


def _listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))
