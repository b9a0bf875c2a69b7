"""Where a simulation is: one live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Final, Self

from rich.markup import escape
from rich.status import Status

from cli.console import PLAIN_EVERY_S, progress
from cli.sizing import duration
from simulation.batch import Step

REFRESH_EVERY_S: Final = 0.1


class StepDisplay:
    """Shows the steps of one simulation."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._status = Status(escape(f"simulating {title}"), console=progress)
        self._terminal = progress.is_terminal
        self._shown_at = time.monotonic()

    def __enter__(self) -> Self:
        if self._terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def update(self, step: Step) -> None:
        """Show where the simulation is; called as often as it moves."""
        now = time.monotonic()
        if now - self._shown_at < (REFRESH_EVERY_S if self._terminal else PLAIN_EVERY_S):
            return
        self._shown_at = now
        line = step_line(step, datetime.now())
        if self._terminal:
            self._status.update(escape(line))
        else:
            progress.print(line, markup=False, soft_wrap=True)


def step_line(step: Step, now: datetime) -> str:
    """Return what runs, how far all of it is, and when it ends. now: local time."""
    of = f"{step.point}, {step.label}" if step.point else step.label
    line = f"run {step.run} of {step.runs} ({of}): {step.finished} of {step.flows} flows have ended"
    if step.left_s is None:
        return line
    end = now + timedelta(seconds=step.left_s)
    return f"{line}, {duration(step.left_s)} left, until {end:%H:%M:%S}"
