"""Marking a class: which files are submissions, what a check leaves, and marks as documents. No sandbox: tests/lab."""

from __future__ import annotations

import base64
import csv
import errno
import json
import os
import signal
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from classroom import alone, marking, sandbox
from classroom.answer import CheckResult
from classroom.labs import LABS
from classroom.marking import Mark, mark_class, read_mark
from classroom.marks import as_csv, as_github_classroom, as_gradescope, as_json
from classroom.process_group import Broken
from classroom.submissions import Submission, SubmissionsError, read_submissions
from cli.app import capstan
from cli.marking import write_marks
from tests.waiting import eventually

LIMITS = sandbox.LIMITS


def submission(student: str = "ada", lab: int = 3) -> Submission:
    return Submission(student, LABS[lab], Path(f"{student}/lab{lab}.py"), Path(f"{student}/results"))


def class_of(directory: Path, *files: str) -> Path:
    for file in files:
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return directory


def test_files_are_submissions_by_their_names(tmp_path: Path) -> None:
    read = read_submissions(
        class_of(
            tmp_path,
            "bob/Lab 3 final.py",
            "ada/lab4.yaml",
            "ada/lab3.py",
            "ada/lab3.yaml",
            "ada/notes.txt",
            ".x/lab1.py",
        )
    )
    assert [(found.student, found.lab.number) for found in read.submissions] == [
        ("ada", 3),
        ("ada", 4),
        ("bob", 3),
    ]
    assert [path.name for path in read.ignored] == ["lab3.yaml", "notes.txt"]
    assert [found.student for found in read_submissions(tmp_path, 4).submissions] == ["ada"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "no submission"),
        (["ada/lab3.py", "ada/lab3-new.py"], "both answer lab 3: keep one"),
        (["lab3.py"], "no submission"),
        (["ada/lab99.py"], "no submission"),
    ],
)
def test_a_directory_without_clear_submissions_is_an_error(
    tmp_path: Path, files: list[str], said: str
) -> None:
    with pytest.raises(SubmissionsError, match=said):
        read_submissions(class_of(tmp_path, *files))


def test_links_and_long_files_are_refused_and_the_others_marked(tmp_path: Path) -> None:
    class_of(tmp_path, "ada/lab3.py", "bob/lab3.py", "eve/x.py", "mal/lab3.py")
    (tmp_path / "ada" / "lab3.py").write_bytes(b" " * (1024 * 1024 + 1))
    (tmp_path / "bob" / "lab3.py").write_bytes(LABS[3].solution.read_bytes())
    (tmp_path / "eve" / "lab3.py").symlink_to(tmp_path / "bob" / "lab3.py")
    (tmp_path / "mal" / "results").symlink_to(tmp_path / "bob")
    ada, bob, eve, mal = mark_class(read_submissions(tmp_path).submissions, 2, in_sandbox=False)
    assert ada.error == "lab3.py: 1048577 B; a submission has at most 1048576 B"
    assert bob.error is None
    assert bob.right == len(bob.findings) > 0
    assert eve.error == "lab3.py: a symbolic link: a submission must be a file"
    assert mal.error == "results: a symbolic link: the student's own files must be there"
    assert not any(mark.failed for mark in (ada, eve, mal)), "marking again would not help"


def test_a_folder_that_is_a_link_is_an_error(tmp_path: Path) -> None:
    """Marks would be written to another student's."""
    class_of(tmp_path, "ada/lab3.py")
    (tmp_path / "mallory").symlink_to(tmp_path / "ada")
    with pytest.raises(SubmissionsError, match="mallory: a symbolic link"):
        read_submissions(tmp_path)


@pytest.mark.parametrize(
    ("code", "verdict", "printed", "error"),
    [
        (Broken.WALL_TIME, "", "", "takes longer than 180 s"),
        (Broken.PROCESSOR_TIME, "", "", "more than 15 s of processor time"),
        (Broken.MEMORY, '{"findings": []}', "", "more than 2 GiB of memory"),
        (Broken.PROCESSES, "", "", "more than 64 processes"),
        (0, '{"error": "/submission/lab3.py, line 1: no"}', "", "lab3.py, line 1: no"),
        (-9, "", "", "more than 15 s of processor time"),
        (152, "", "", "more than 15 s of processor time"),
        (1, "", "Traceback\nMemoryError", "more than 2 GiB of memory"),
        (0, "", "", "ends with exit code 0"),
        (0, '{"findings": 3}', "", "ends with exit code 0"),
        (0, "[]", "what", "ends with exit code 0: what"),
        (1, "{", "\xff\x00 odd", "ends with exit code 1: \ufffd\ufffd odd"),
        (0, "[" * 100_000, "", "ends with exit code 0"),
        (0, '{"findings": [{"right": false}]}', "", "ends with exit code 0"),
        (0, '{"error": "\\ud800\\u001b[2J, no"}', "", "\ufffd\ufffd[2J, no"),
    ],
)
def test_a_check_without_findings_says_why(
    tmp_path: Path, code: int | Broken, verdict: str, printed: str, error: str
) -> None:
    written, output = tmp_path / "verdict.json", tmp_path / "output.txt"
    if verdict:
        written.write_text(verdict)
    output.write_bytes(printed.encode("latin-1"))
    mark = read_mark(submission(), code, written, output=output, limits=LIMITS)
    assert mark.findings == ()
    assert mark.error is not None
    assert error in mark.error


def test_a_submission_that_an_interrupt_ended_has_no_mark(tmp_path: Path) -> None:
    marked: list[Mark] = []
    students, begun = tmp_path / "class", tmp_path / "begun"
    class_of(students, "ada/lab3.py", "bob/lab3.py", "eve/lab3.py")
    (students / "bob" / "lab3.py").write_text(
        f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(600)\n"
    )

    def interrupt() -> None:
        eventually(begun.exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        mark_class(read_submissions(students).submissions, 1, in_sandbox=False, marked=marked.append)
    thread.join()
    assert [mark.submission.student for mark in marked] == ["ada"], "bob's takes no 180 s"


def test_a_batch_with_submissions_that_could_not_be_marked_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_of(tmp_path / "class", "ada/lab3.py", "bob/lab3.py")

    def full(results: Path, copy: Path) -> None:
        if results.parent.name == "ada":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(marking, "copy_results", full)
    arguments = ["lab-check", "--batch", str(tmp_path / "class"), "--marks", str(tmp_path / "marks")]
    ended = CliRunner().invoke(capstan, [*arguments, "--without-sandbox"])
    assert ended.exit_code == 1
    assert "1 of 2 submissions could not be marked" in ended.output
    rows = list(csv.DictReader((tmp_path / "marks" / "marks.csv").read_text().splitlines()))
    assert {row["student"]: "No space left" in row["text"] for row in rows} == {"ada": True, "bob": False}


@pytest.mark.parametrize("kind", ["pipe", "link", "directory"])
def test_what_a_submission_puts_in_the_place_of_its_verdict_is_not_read(tmp_path: Path, kind: str) -> None:
    verdict, output = tmp_path / "verdict.json", tmp_path / "output.txt"
    output.touch()
    right = tmp_path / "right.json"
    right.write_text('{"findings": [{"right": true, "text": "step 4: good"}]}')
    assert read_mark(submission(), 0, right, output=output, limits=LIMITS).right == 1
    if kind == "pipe":
        os.mkfifo(verdict)
    elif kind == "link":
        verdict.symlink_to(right)
    else:
        verdict.mkdir()
    mark = read_mark(submission(), 0, verdict, output=output, limits=LIMITS)
    assert (mark.findings, mark.error) == ((), "ends with exit code 0")


MARKS = [
    Mark(submission(), (CheckResult(True, "step 1: good"), CheckResult(False, "step 2: 3, not 4")), None),
    Mark(submission("=cmd|'/c calc'!A1", 5), (), "lab5.py, line 1: no"),
]


def test_marks_beside_submissions_do_not_follow_a_students_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("the lecturer's own")
    folder = class_of(tmp_path / "class", "ada/lab3.py") / "ada"
    (folder / "gradescope.json").symlink_to(precious)
    write_marks(MARKS[:1], folder.parent)
    assert precious.read_text() == "the lecturer's own"
    assert json.loads((folder / "gradescope.json").read_text())["tests"][0]["score"] == 1
    assert not (folder / "gradescope.json").is_symlink()
    assert sorted(path.name for path in folder.parent.iterdir()) == ["ada", "marks.csv", "marks.json"]


def test_marks_are_a_table_with_a_row_per_item_and_no_formulas() -> None:
    rows = list(csv.DictReader(as_csv(MARKS).splitlines()))
    assert [(row["student"], row["lab"], row["item"], row["right"]) for row in rows] == [
        ("ada", "3", "step 1", "1"),
        ("ada", "3", "step 2", "0"),
        ("'=cmd|'/c calc'!A1", "5", "file", "0"),
    ]
    document = as_json(MARKS)["marks"]
    assert [(mark["right"], mark["items"], mark["error"]) for mark in document] == [
        (1, 2, None),
        (0, 0, MARKS[1].error),
    ]


def test_an_item_that_a_submission_names_is_no_formula() -> None:
    (row,) = csv.DictReader(as_csv([Mark(submission(), (CheckResult(True, "=1+1: x"),), None)]).splitlines())
    assert (row["item"], row["text"]) == ("'=1+1", "'=1+1: x")


def test_gradescope_and_github_classroom_get_a_point_per_item() -> None:
    tests = as_gradescope(MARKS)["tests"]
    assert [(test["name"], test["score"], test["max_score"], test["status"]) for test in tests] == [
        ("lab 3, step 1", 1, 1, "passed"),
        ("lab 3, step 2", 0, 1, "failed"),
        ("lab 5, file", 0, 1, "failed"),
    ]
    document = json.loads(base64.b64decode(as_github_classroom(MARKS)))
    assert (document["version"], document["status"], document["max_score"]) == (1, "fail", 3)
    assert [test["score"] for test in document["tests"]] == [1, 0, 0]


def test_the_last_whole_verdict_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a sandbox cannot be replaced: each process of a submission appends a line in one step."""
    verdict, output = tmp_path / "verdict.json", tmp_path / "output.txt"
    output.touch()
    verdict.write_text('{"error": "written by a forked process"}\n')
    monkeypatch.setattr("sys.argv", ["alone", "3", str(LABS[3].solution), str(tmp_path), str(verdict)])
    alone.main()
    whole = verdict.read_bytes()
    assert read_mark(submission(), 0, verdict, output=output, limits=LIMITS).right > 0
    verdict.write_bytes(whole + b'{"error": "ended while it wro')
    assert read_mark(submission(), 0, verdict, output=output, limits=LIMITS).right > 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["output.txt", "verdict.json"]


@pytest.mark.slow
def test_limits_hold_without_a_sandbox_too(tmp_path: Path) -> None:
    class_of(tmp_path, "long/lab3.py", "loop/lab3.py", "right/lab3.py")
    (tmp_path / "long/lab3.py").write_text("x = bytearray(8 * 1024**3)\n")
    (tmp_path / "loop/lab3.py").write_text("while True:\n    pass\n")
    (tmp_path / "right/lab3.py").write_bytes(LABS[3].solution.read_bytes())
    limits = sandbox.Limits(processor_s=3)
    marks = mark_class(read_submissions(tmp_path).submissions, 2, limits=limits, in_sandbox=False)
    assert [mark.submission.student for mark in marks] == ["long", "loop", "right"]
    assert "MemoryError" in str(marks[0].error)
    assert "3 s of processor time" in str(marks[1].error)
    assert marks[2].error is None
    assert marks[2].right == len(marks[2].findings) > 0


def test_the_command_marks_and_writes(tmp_path: Path) -> None:
    class_of(tmp_path / "class", "ada/lab3.py", "ada/readme.txt")
    (tmp_path / "class/ada/lab3.py").write_bytes(LABS[3].solution.read_bytes())
    words = [
        "lab-check",
        "--batch",
        str(tmp_path / "class"),
        "--marks",
        str(tmp_path / "marks"),
        "--without-sandbox",
    ]
    ran = CliRunner().invoke(capstan, words)
    assert ran.exit_code == 0, ran.output
    assert "8 of 8" in ran.output
    assert json.loads((tmp_path / "marks/ada/gradescope.json").read_text())["tests"][0]["status"] == "passed"
    assert (tmp_path / "marks/marks.csv").read_text().count("\n") == 9
    refused = CliRunner().invoke(capstan, ["lab-check", "--batch", str(tmp_path), "3", "x.py"])
    assert refused.exit_code == 2
