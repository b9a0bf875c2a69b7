"""A class of 35 submissions, marked as `lab-check --batch` marks them: each in a sandbox of its own, on all cores.

Five students answer all labs, with a recorded table of flows for lab 1; of every second one the answers are those that
the labs begin with, so that what is wrong takes its time, too.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import BenchmarkError, Figure, Goal, document, percentile
from classroom.labs import LABS
from classroom.marking import Mark, mark_class
from classroom.submissions import read_submissions
from topologies.cores import own_cores

STUDENTS: Final = 5
RUN_OF_LAB_1: Final = (
    "id,repeat,traffic_class,paths\n1,0,long,2049:900\n2,0,long,2049:800 2050:10\n3,0,long,2050:700\n"
)
"""Two of its three long flows share a path."""
GOAL: Final = Goal(60.0, cores=2)


def run() -> dict[str, Any]:
    """Measure, and return the figures. Raises SandboxError where there is none, BenchmarkError."""
    cores = own_cores().workers()
    with tempfile.TemporaryDirectory(prefix="capstan-class-") as directory:
        hand_in(Path(directory))
        submissions = read_submissions(Path(directory)).submissions
        ends: list[float] = []
        begun = time.monotonic()
        marks = mark_class(submissions, cores, marked=lambda mark: ends.append(time.monotonic()))
        seconds = time.monotonic() - begun
    check(marks)
    gaps = [later - earlier for earlier, later in zip([begun, *ends], ends, strict=False)]
    figures = {
        f"{len(marks)} submissions": Figure(seconds, "s", GOAL),
        "from a mark to the next, p95": Figure(percentile(gaps, 95), "s"),
    }
    return document(figures, (f"{STUDENTS} students, {len(LABS)} labs; {cores} at once",))


def hand_in(directory: Path) -> None:
    """Put a folder for each student into *directory*, with an answer for each lab and the result that lab 1 wants."""
    for student in range(STUDENTS):
        folder = directory / f"student{student + 1}"
        result = folder / "results" / "lab1-20260101-120000"
        result.mkdir(parents=True)
        (result / "flows.csv").write_text(RUN_OF_LAB_1, encoding="utf-8")
        for number, lab in LABS.items():
            answer = lab.directory / lab.start if student % 2 else lab.solution
            shutil.copyfile(answer, folder / f"lab{number}{answer.suffix}")


def check(marks: list[Mark]) -> None:
    """Raise BenchmarkError unless all solutions are right, and none of the others is."""
    for mark in marks:
        solved = mark.error is None and mark.right == len(mark.findings) > 0
        if solved != (int(mark.submission.student[-1]) % 2 == 1):
            raise BenchmarkError(
                f"{mark.submission.student}, lab {mark.submission.lab.number}: "
                f"{mark.error or f'{mark.right} of {len(mark.findings)} right'}"
            )
