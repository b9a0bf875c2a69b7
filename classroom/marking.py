"""Mark a class: each submission is checked in a sandbox of its own, as many at once as there are cores."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from classroom import sandbox
from classroom.answer import CheckResult
from classroom.own_results import copy_results
from classroom.printable import printable
from classroom.process_group import Broken, new_group, place_of_groups
from classroom.scratch import scratch_directory
from classroom.submissions import Submission
from classroom.system_calls import call_filter

MOST_TEXT: Final = 2000
"""Characters of a finding, and of what a submission printed before it failed."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What the check of a submission found. error: why there are no findings, else None.

    failed: there are none because marking failed, not the submission.
    """

    submission: Submission
    findings: tuple[CheckResult, ...]
    error: str | None
    failed: bool = False

    @property
    def right(self) -> int:
        """Return the number of items that are right."""
        return sum(finding.right for finding in self.findings)


def mark_class(
    submissions: Sequence[Submission],
    at_once: int,
    *,
    limits: sandbox.Limits = sandbox.LIMITS,
    in_sandbox: bool = True,
    marked: Callable[[Mark], None] = lambda mark: None,
) -> list[Mark]:
    """Return a mark per submission, in their order; *marked* is called with each as it is there, but for those that are
    being checked when an interrupt ends it all.

    Raises SandboxError where this machine cannot make a sandbox.
    """
    if in_sandbox:
        sandbox.check_sandbox()

    place, stopped = place_of_groups(), threading.Event()

    def mark_and_report(submission: Submission, number: int) -> Mark:
        user = sandbox.FIRST_USER + number % sandbox.USERS
        try:
            mark = mark_submission(
                submission, limits, user=user, groups=place, stopped=stopped, in_sandbox=in_sandbox
            )
        except Exception as error:  # of one student, whatever it is: the others have their marks
            mark = Mark(
                submission,
                (),
                f"could not be marked: {type(error).__name__}: {printable(str(error))}",
                failed=True,
            )
        if not stopped.is_set():  # else it was ended by us, not by a limit
            marked(mark)
        return mark

    with ThreadPoolExecutor(at_once) as pool:
        try:
            return list(pool.map(mark_and_report, submissions, itertools.count()))
        except BaseException:  # Ctrl-C: a submission, in a session of its own, does not have it
            stopped.set()
            raise


def mark_submission(
    submission: Submission,
    limits: sandbox.Limits,
    *,
    user: int,
    groups: Path | None,
    stopped: threading.Event,
    in_sandbox: bool,
) -> Mark:
    """Return what the check of *submission* finds within *limits*.

    user: whom a sandbox of root becomes. groups: below which its control group is made. stopped: set to end it early.
    """
    if submission.refused is not None:
        return Mark(submission, (), submission.refused)
    with scratch_directory() as scratch:
        root = os.geteuid() == 0
        verdict = _own_file(scratch / "verdict.json", b"")
        if root and in_sandbox:
            os.chown(verdict, user, user)
        copy = scratch / submission.file.name  # its own may be readable by its owner only
        shutil.copyfile(submission.file, copy)
        copy.chmod(0o644)
        results = scratch / "results"
        copy_results(submission.results, results)
        rules = call_filter() if in_sandbox else None
        filtered = None if rules is None else _own_file(scratch / "calls.bpf", rules)
        place = sandbox.Place(copy, results, verdict, filtered, user)
        seen = sandbox.inside(place) if in_sandbox else place
        arguments = ["-m", "classroom.alone", str(submission.lab.number)]
        arguments += [str(seen.file), str(seen.results), str(seen.verdict)]
        if in_sandbox:
            command, environment = sandbox.sandboxed(place, arguments, limits, root=root), None
        else:
            command = sandbox.limited(limits, [sandbox.PYTHON, *arguments])
            home = scratch / "home"
            home.mkdir()
            environment = sandbox.plain_environment(home)
        output = scratch / "output.txt"
        group = new_group(groups, limits.together)
        ending = sandbox.run(
            command, output, limits=limits, group=group, environment=environment, stopped=stopped
        )
        return read_mark(submission, ending, place.verdict, output=output, limits=limits)


def _own_file(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path


def read_mark(
    submission: Submission, ending: int | Broken, verdict: Path, *, output: Path, limits: sandbox.Limits
) -> Mark:
    """Return the mark that a check has left: its verdict, or why there is none.

    ending: its exit code, or the limit for which it was ended.
    """
    if isinstance(ending, Broken):
        return Mark(submission, (), _beyond(ending, limits))
    try:
        document = json.loads(_last_line(_read_file(verdict, limits.file_size)))
        if "error" in document:
            return Mark(submission, (), _text(document["error"]))
        findings = tuple(
            CheckResult(bool(finding["right"]), _text(finding["text"])) for finding in document["findings"]
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        printed = output.read_text(encoding="utf-8", errors="replace").strip()[-MOST_TEXT:]
        return Mark(submission, (), _ending(ending, _printable(printed).splitlines()[-1:], limits))
    return Mark(submission, findings, None)


def _read_file(path: Path, most: int) -> bytes:
    """Return at most so many bytes of a file. Raise OSError if it is none: a submission may leave a pipe or a link."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is no regular file")
        return file.read(most)


def _last_line(data: bytes) -> bytes:
    """Return the last whole line: each process of a submission appends one. Without line ends, all is one."""
    whole, end, _ = data.rpartition(b"\n")
    return whole.rpartition(b"\n")[2] if end else data


def _printable(text: str) -> str:
    """Return the begin of *text* as terminals and files take it."""
    return printable(text[:MOST_TEXT])


def _text(found: object) -> str:
    """Return a text of a verdict, with files as the student knows them: the sandbox has them in /submission/."""
    return _printable(str(found)).replace("/submission/", "")


def _beyond(broken: Broken, limits: sandbox.Limits) -> str:
    match broken:
        case Broken.WALL_TIME:
            return f"takes longer than {limits.wall_s:g} s: is there a loop without an end?"
        case Broken.PROCESSOR_TIME:
            return (
                f"takes more than {limits.processor_s} s of processor time: is there a loop without an end?"
            )
        case Broken.MEMORY:
            return f"takes more than {limits.memory / 1024**3:g} GiB of memory"
        case Broken.PROCESSES:
            return f"has more than {limits.processes} processes at once"


def _ending(code: int, last_line: list[str], limits: sandbox.Limits) -> str:
    signal_number = code - 128 if code > 128 else -code
    if signal_number in (9, 24):  # SIGKILL, SIGXCPU: the limit of processor time
        return _beyond(Broken.PROCESSOR_TIME, limits)
    if last_line and "MemoryError" in last_line[0]:
        return _beyond(Broken.MEMORY, limits)
    return f"ends with exit code {code}" + (f": {last_line[0]}" if last_line else "")
