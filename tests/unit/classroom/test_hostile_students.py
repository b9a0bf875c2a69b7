"""What students may do to the marking of others: folders without end, names that terminals obey, errors of ours."""

from __future__ import annotations

import csv
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from classroom import marking
from classroom.answer import CheckResult
from classroom.labs import LABS
from classroom.marking import Mark, mark_class
from classroom.scratch import remove
from classroom.submissions import SubmissionsError, read_submissions
from classroom.system_calls import call_filter
from cli.marking import mark_batch
from tests.greedy_submissions import DEEP


def class_of(directory: Path, *students: str) -> Path:
    for student in students:
        (directory / student).mkdir(parents=True)
        (directory / student / "lab3.py").write_bytes(LABS[3].solution.read_bytes())
    return directory


@pytest.mark.slow
def test_a_submission_that_makes_folders_without_end_ends_no_other_marking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`shutil.rmtree` calls itself for each level: its RecursionError ended the marking of the whole class."""
    classes = class_of(tmp_path / "class", "ada", "eve")
    solution = (classes / "eve/lab3.py").read_text()
    (classes / "eve/lab3.py").write_text(DEEP.replace("PLACES", "[os.environ['TMPDIR']]") + solution)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    marks = mark_class(read_submissions(classes).submissions, 2, in_sandbox=False)
    assert [(mark.submission.student, mark.error) for mark in marks] == [("ada", None), ("eve", None)]
    assert list(scratch.iterdir()) == []


def test_whatever_is_in_a_directory_it_is_removed_and_nothing_else(tmp_path: Path) -> None:
    kept, scratch = tmp_path / "kept", tmp_path / "scratch"
    for place in (kept, scratch / "a/b/c", scratch / "a/d"):
        place.mkdir(parents=True)
        (place / "file").write_text("x")
    (scratch / "a/link").symlink_to(kept)
    os.mkfifo(scratch / "a/pipe")
    for place in (scratch / "a/b/c", scratch / "a/b", scratch / "a"):
        place.chmod(0)
    remove(scratch)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").read_text() == "x"


def test_whatever_fails_is_the_error_of_that_student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class_of(tmp_path, "ada", "eve")
    copy = marking.copy_results

    def deep(source: Path, target: Path) -> None:
        if source.parent.name == "eve":
            raise RecursionError("maximum\x1b[2J depth")
        copy(source, target)

    monkeypatch.setattr(marking, "copy_results", deep)
    ada, eve = mark_class(read_submissions(tmp_path).submissions, 2, in_sandbox=False)
    assert ada.right > 0
    assert eve.error == "could not be marked: RecursionError: maximum\ufffd[2J depth"


def test_what_was_marked_is_written_when_the_marking_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_of(tmp_path / "class", "ada", "eve")

    def ended(submissions: Any, at_once: int, *, in_sandbox: bool, marked: Any) -> list[Mark]:
        marked(Mark(submissions[0], (CheckResult(True, "step 1: good"),), None))
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.marking.mark_class", ended)
    with pytest.raises(KeyboardInterrupt):
        mark_batch(tmp_path / "class", None, tmp_path / "marks", in_sandbox=False)
    assert "ada,3,step 1,1" in (tmp_path / "marks/marks.csv").read_text()


def test_marks_are_written_though_the_reader_of_the_table_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_of(tmp_path / "class", "ada")

    def one(submissions: Any, at_once: int, *, in_sandbox: bool, marked: Any) -> list[Mark]:
        marked(Mark(submissions[0], (CheckResult(True, "step 1: good"),), None))
        return []

    def gone(*_: object, **__: object) -> None:
        raise SystemExit(1)  # as rich does

    monkeypatch.setattr("cli.marking.mark_class", one)
    monkeypatch.setattr("cli.console.results.print", gone)
    with pytest.raises(SystemExit):
        mark_batch(tmp_path / "class", None, tmp_path / "marks", in_sandbox=False)
    assert "ada,3,step 1,1" in (tmp_path / "marks/marks.csv").read_text()


def test_marks_that_can_be_written_nowhere_are_an_error_before_a_class_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class_of(tmp_path / "class", "ada")
    (tmp_path / "marks").write_text("no directory")
    monkeypatch.setattr("cli.marking.mark_class", None)
    with pytest.raises(SystemExit) as ended:
        mark_batch(tmp_path / "class", None, tmp_path / "marks", in_sandbox=False)
    assert ended.value.code == 2
    assert f"--marks {tmp_path / 'marks'}: {tmp_path / 'marks'} is not a directory" in capsys.readouterr().err


ESCAPE = "\x1b]52;c;cm0gLXJm\x1b\\"


def test_names_of_files_and_folders_are_printed_without_escapes(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal obeys them; and a name that is no UTF-8 made marks.csv fail when all was marked."""
    odd = os.fsencode(tmp_path) + b"/class/ev\xff" + ESCAPE.replace("/", "").encode()
    os.makedirs(odd)
    for name in (b"lab3.py", b"note\x1b[2J.txt"):
        with open(odd + b"/" + name, "w"):
            pass

    def marked(submissions: Any, at_once: int, *, in_sandbox: bool, marked: Any) -> list[Mark]:
        for found in submissions:
            marked(Mark(found, (CheckResult(True, "step 1: good"),), None))
        return []

    monkeypatch.setattr("cli.marking.mark_class", marked)
    mark_batch(tmp_path / "class", None, tmp_path / "marks", in_sandbox=False)
    printed = b"".join(capfdbinary.readouterr())
    for obeyed in (b"\x1b]", b"\x1b[2J", b"\xff"):
        assert obeyed not in printed
    rows = list(csv.DictReader((tmp_path / "marks/marks.csv").read_text().splitlines()))
    assert rows[0]["student"].startswith("ev\\udcff\\x1b")
    (tmp_path / "class" / "ada\x1b[2J").mkdir()
    for file in ("lab3.py", "lab3-new.py"):
        (tmp_path / "class" / "ada\x1b[2J" / file).touch()
    with pytest.raises(SubmissionsError) as refused:
        read_submissions(tmp_path / "class")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filters_are_whole_programs(machine: str) -> None:
    """Each jump ends within the program, and the last instruction returns."""
    program = call_filter(machine)
    assert program is not None
    code = list(struct.iter_unpack("<HBBI", program))
    for place, (_, yes, no, _) in enumerate(code):
        assert place + 1 + max(yes, no) <= len(code) - (code[place][0] != 0x06)
    assert code[-1] == (0x06, 0, 0, 0x7FFF0000)
    assert call_filter("riscv64") is None
