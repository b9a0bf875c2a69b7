"""``capstan lab-check``: what is missing in a student's answer to a classroom lab."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from classroom.answer import AnswerError
from classroom.labs import LABS
from cli.console import fail, results
from cli.marking import mark_batch
from cli.spec_options import results_option

MOST_S = 60
AGAIN_S = 5
_TOO_LONG = f"your file takes longer than {MOST_S} s: is there a loop without an end?"


@click.command(
    "lab-check",
    epilog="Examples:  ./capstan lab-check    ./capstan lab-check 3 my_r.py    ./capstan lab-check --batch class/",
)
@click.argument("number", required=False, type=click.IntRange(min(LABS), max(LABS)))
@click.argument("file", required=False, type=click.Path(path_type=Path))
@results_option
@click.option(
    "--batch",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Mark a class: DIR has a folder per student, with labN.py (labs 4 and 6: labN.yaml). NUMBER: that lab only.",
)
@click.option(
    "--marks",
    metavar="DIR",
    default="marks",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where --batch writes marks.csv, marks.json, and per student what Gradescope and GitHub Classroom read.",
)
@click.option(
    "--without-sandbox",
    is_flag=True,
    help="--batch: limits of time and memory only. For a container or virtual machine that is thrown away.",
)
def lab_check_command(
    *,
    number: int | None,
    file: Path | None,
    directory: Path,
    batch: Path | None,
    marks: Path,
    without_sandbox: bool,
) -> None:
    """Check FILE, your answer to classroom lab NUMBER, and say what is missing; without arguments, list the labs.

    FILE is a program, and is run: check only files that you would start yourself. --batch runs each in a sandbox. Exit
    code 0: nothing is missing; with --batch: all were marked.
    """
    if batch is not None:
        if file is not None:
            fail("--batch marks what is in its directory: leave FILE out", code=2)
        mark_batch(batch, number, marks, in_sandbox=not without_sandbox)
        return
    if number is None:
        for lab in LABS.values():
            readme = _shown(lab.directory / "README.md")
            results.print(f"{lab.number}  {lab.title:32} {readme}", markup=False, soft_wrap=True)
        return
    lab = LABS[number]
    if file is None:
        fail(
            f"lab {number} ({lab.title}): give your file: ./capstan lab-check {number} FILE; "
            f"begin with a copy of {_shown(lab.directory / lab.start)}",
            code=2,
        )
    with _limit_of_time():
        verdicts = lab.check(file, directory)
    for verdict in verdicts:
        results.print(
            f"{'  ok     ' if verdict.right else 'MISSING  '}{verdict.text}", markup=False, soft_wrap=True
        )
    missing = sum(not verdict.right for verdict in verdicts)
    if missing:
        results.print(f"lab {number}: {missing} of {len(verdicts)} missing", markup=False)
        sys.exit(1)
    results.print(f"lab {number}: nothing is missing", markup=False)


def _shown(path: Path) -> Path:
    """Return a lab's file as its reader finds it: from the directory that holds a checkout, else its whole path."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


class _TooLong(BaseException):
    """No error of the answer's, so that nothing in it catches this that catches its own errors."""


@contextmanager
def _limit_of_time() -> Iterator[None]:
    """End what takes longer than MOST_S by AnswerError; Windows has no alarms, and Ctrl-C ends it there."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return
    signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, MOST_S, AGAIN_S)
    try:
        yield
    except _TooLong:
        raise AnswerError(_TOO_LONG) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _end(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGALRM, _end_at_once)
    raise _TooLong


def _end_at_once(_number: int, _frame: object) -> None:
    """End the program: the answer has caught even what nothing should catch."""
    os.write(2, f"capstan: {_TOO_LONG}\n".encode())
    os._exit(1)
