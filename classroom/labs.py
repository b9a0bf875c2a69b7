"""The labs by number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from classroom import application, collisions, flow_types, killed_parts, mode_time, own_path, repairs
from classroom.answer import CheckResult

DIRECTORY: Final = Path(__file__).resolve().parents[1] / "docs" / "labs"


@dataclass(frozen=True, slots=True)
class ClassroomLab:
    """folder: below docs/labs, with README.md and start.*; solutions/ has its solution.

    check: of a student's file and the directory of results.
    """

    number: int
    title: str
    folder: str
    start: str
    check: Callable[[Path, Path], list[CheckResult]]

    @property
    def directory(self) -> Path:
        return DIRECTORY / self.folder

    @property
    def solution(self) -> Path:
        return DIRECTORY / "solutions" / f"{self.folder}{Path(self.start).suffix}"


LABS: Final = {
    lab.number: lab
    for lab in (
        ClassroomLab(1, "Why ECMP collides", "1-ecmp-collides", "start.py", collisions.check),
        ClassroomLab(2, "A path policy of your own", "2-path-policy", "start.py", own_path.check),
        ClassroomLab(3, "Reordering and FEC: choose r", "3-choose-r", "start.py", repairs.check),
        ClassroomLab(4, "ON and OFF: find T", "4-find-t", "start.yaml", mode_time.check),
        ClassroomLab(5, "Predict priorities", "5-predict-priorities", "start.py", flow_types.check),
        ClassroomLab(6, "Kill the controller", "6-kill-the-controller", "start.yaml", killed_parts.check),
        ClassroomLab(7, "An application of your own", "7-your-application", "start.py", application.check),
    )
}
