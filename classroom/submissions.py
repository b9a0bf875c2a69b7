"""A class's submissions: one folder a student, one file a lab (``ada/lab3.py``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capstan_client.errors import CapstanError
from classroom.labs import LABS, ClassroomLab
from classroom.printable import printable_name

MOST_BYTES: Final = 1024 * 1024
"""Of a submission: a longer file is not run."""
MOST_STUDENTS: Final = 5000
_NAME: Final = re.compile(r"lab[ _-]?(?P<number>\d+)([ _.-].*)?", re.IGNORECASE)


class SubmissionsError(CapstanError, ValueError):
    """A directory without submissions, or one that says twice what a student's answer is."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A student's file for a lab. results: the directory with results of the student's own runs.

    refused: why the file is not run; None: it is.
    """

    student: str
    lab: ClassroomLab
    file: Path
    results: Path
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Submissions:
    """submissions: by student, then lab. ignored: files in students' folders that belong to no lab."""

    submissions: tuple[Submission, ...]
    ignored: tuple[Path, ...]


def read_submissions(directory: Path, number: int | None = None) -> Submissions:
    """Return the submissions in *directory*, for lab *number* alone if given.

    Raises SubmissionsError: no such directory, nothing in it, a lab that a student answered twice, a folder that is a
    link.
    """
    if not directory.is_dir():
        raise SubmissionsError(
            f"{printable_name(directory)}: there is no such directory: give one with a folder per student"
        )
    folders = sorted(path for path in directory.iterdir() if path.is_dir() and not path.name.startswith("."))
    if len(folders) > MOST_STUDENTS:
        raise SubmissionsError(
            f"{printable_name(directory)}: {len(folders)} folders; at most {MOST_STUDENTS} are marked at once"
        )
    submissions: list[Submission] = []
    ignored: list[Path] = []
    for folder in folders:
        if folder.is_symlink():  # it would hold what is another's, or a solution
            raise SubmissionsError(
                f"{printable_name(folder)}: a symbolic link: put the student's own files there"
            )
        answers: dict[int, Path] = {}
        for file in sorted(path for path in folder.iterdir() if path.is_file() or path.is_symlink()):
            lab = lab_of(file)
            if lab is None:
                ignored.append(file)
                continue
            if lab.number in answers:
                raise SubmissionsError(
                    f"{printable_name(folder)}: {printable_name(answers[lab.number].name)} and "
                    f"{printable_name(file.name)} both answer lab {lab.number}: keep one"
                )
            answers[lab.number] = file
        submissions += [
            Submission(folder.name, LABS[answered], file, folder / "results", _refusal(file))
            for answered, file in sorted(answers.items())
            if number in (None, answered)
        ]
    if not submissions:
        wanted = f"lab{number or 'N'}.py or .yaml"
        raise SubmissionsError(
            f"{printable_name(directory)}: no submission: put each student's {wanted} into a folder of the student's"
        )
    return Submissions(tuple(submissions), tuple(ignored))


def lab_of(file: Path) -> ClassroomLab | None:
    """Return the lab that *file* answers by its name (``lab3.py``, ``Lab 3 final.py``), or None."""
    match = _NAME.fullmatch(file.stem)
    lab = LABS.get(int(match["number"])) if match else None
    return lab if lab is not None and file.suffix == Path(lab.start).suffix else None


def _refusal(file: Path) -> str | None:
    """Return why a student's file is not run; None: it is. It is of that student alone: the others are marked."""
    results = file.parent / "results"
    if results.is_symlink():  # it would hold what is another's, or a solution
        return "results: a symbolic link: the student's own files must be there"
    name = printable_name(file.name)
    if file.is_symlink():
        return f"{name}: a symbolic link: a submission must be a file"
    size = file.stat().st_size
    return f"{name}: {size} B; a submission has at most {MOST_BYTES} B" if size > MOST_BYTES else None
