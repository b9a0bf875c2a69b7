"""``capstan lab-check --batch``: mark a class, and write and show its marks."""

from __future__ import annotations

import json
import tempfile
from itertools import groupby
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from classroom.marking import Mark, mark_class
from classroom.marks import as_csv, as_github_classroom, as_gradescope, as_json, item_of
from classroom.printable import printable_name
from classroom.submissions import read_submissions
from cli.console import fail, need_place, progress, results
from topologies.cores import own_cores


def mark_batch(directory: Path, number: int | None, marks_directory: Path, *, in_sandbox: bool) -> None:
    """Mark the submissions in *directory*, print a table, and write *marks_directory*.

    What has been marked is written whatever ends it. Raises SubmissionsError, SandboxError; exits with 1 if some could
    not be marked.
    """
    need_place(marks_directory, "--marks")
    submissions = read_submissions(directory, number)
    for file in submissions.ignored:
        name = printable_name(file)
        progress.print(f"{name}: not a submission: labN.py or labN.yaml is", style="dim", markup=False)
    count = len(submissions.submissions)
    done: list[Mark] = []
    try:
        with progress.status(f"marking {count} submissions") as status:

            def show(mark: Mark) -> None:
                done.append(mark)
                last = printable_name(mark.submission.student)
                status.update(escape(f"marked {len(done)} of {count}, last {last}"))

            mark_class(submissions.submissions, own_cores().workers(), in_sandbox=in_sandbox, marked=show)
    finally:  # whatever ends it: what was marked is kept
        marks = sorted(done, key=lambda mark: (mark.submission.student, mark.submission.lab.number))
        if marks:
            try:  # first: where the reader of the table has gone, as `head` does, printing ends the program
                write_marks(marks, marks_directory)
            finally:
                results.print(table_of(marks))
            results.print(
                f"marks: {marks_directory}/marks.csv, marks.json, and a folder per student", markup=False
            )
    if failed := sum(mark.failed for mark in done):
        fail(f"{failed} of {count} submissions could not be marked: marks.csv says why; mark them again")


def table_of(marks: list[Mark]) -> Table:
    """Return a row per student: items right of each lab, and what is missing."""
    numbers = sorted({mark.submission.lab.number for mark in marks})
    table = Table("student", *(f"lab {number}" for number in numbers), "missing")
    for student, group in groupby(marks, key=lambda mark: mark.submission.student):
        by_lab = {mark.submission.lab.number: mark for mark in group}
        cells = [_cell(by_lab.get(number)) for number in numbers]
        missing = [f"lab {number}: {text}" for number, mark in by_lab.items() for text in missing_items(mark)]
        table.add_row(escape(printable_name(student)), *cells, escape("; ".join(missing)))
    return table


def missing_items(mark: Mark) -> list[str]:
    """Return what is missing, an item each, without what was found."""
    if mark.error is not None:
        return [mark.error]
    return [item_of(finding.text) for finding in mark.findings if not finding.right]


def write_marks(marks: list[Mark], directory: Path) -> None:
    """Write ``marks.csv``, ``marks.json``, and ``STUDENT/gradescope.json`` and ``STUDENT/github-classroom.txt``.

    Each file is there whole or as it was; a link in its place, which a student may have put there, is not followed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".marks-", dir=directory) as drafts:

        def write(file: Path, text: str) -> None:
            draft = Path(drafts) / file.name
            draft.write_text(text, encoding="utf-8", errors="backslashreplace")
            draft.replace(file)

        write(directory / "marks.csv", as_csv(marks))
        write(directory / "marks.json", json.dumps(as_json(marks), indent=2) + "\n")
        for student, group in groupby(marks, key=lambda mark: mark.submission.student):
            own = list(group)
            folder = directory / student
            folder.mkdir(exist_ok=True)
            write(folder / "gradescope.json", json.dumps(as_gradescope(own), indent=2) + "\n")
            write(folder / "github-classroom.txt", as_github_classroom(own) + "\n")


def _cell(mark: Mark | None) -> str:
    if mark is None:
        return "-"
    return "error" if mark.error is not None else f"{mark.right} of {len(mark.findings)}"
