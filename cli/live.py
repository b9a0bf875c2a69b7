"""What is shown while an experiment runs, and while a lab is held."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from capstan_client.errors import ControllerError
from cli.console import PLAIN_EVERY_S, progress
from experiments.run.deployment import Deployment
from experiments.run.progress import RunProgress
from experiments.run.supervision import Restart
from loops.ending import Ending

if TYPE_CHECKING:
    from engine.held_lab import HeldQueue
    from engine.worker import Attempt

_STATES: Final = {
    "running": "runs",
    "finished": "has finished",
    "failed": "failed",
    "interrupted": "was stopped",
}


class Display:
    """Stage, run, flows finished, time left: one live line on a terminal, a line now and then elsewhere."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._live = Live(console=progress, refresh_per_second=4, transient=True)
        self._terminal = progress.is_terminal
        self._last_stage = ""
        self._last_printed = 0.0

    def __enter__(self) -> Self:
        progress.print(self._title, style="bold", markup=False)
        if self._terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            self._live.stop()

    def notices(self, notices: Sequence[str]) -> None:
        """Print what people must know of this fabric."""
        for notice in notices:
            progress.print(f"note: {notice}", markup=False, soft_wrap=True)

    def update(self, state: RunProgress) -> None:
        """Show where the experiment is."""
        if self._terminal:
            self._live.update(_line(state))
            return
        now = time.monotonic()
        if state.stage != self._last_stage or now - self._last_printed >= PLAIN_EVERY_S:
            self._last_stage, self._last_printed = state.stage, now
            progress.print(_words(state), markup=False, soft_wrap=True)


def _words(state: RunProgress) -> str:
    parts = [f"{state.elapsed_s:6.1f} s  {state.stage}"]
    if state.run:
        parts.append(f"run {state.run} of {state.runs}, {state.finished} of {state.flows} flows finished")
    if state.failed:
        parts.append(f"{state.failed} FAILED")
    if state.left_s is not None:
        parts.append(f"{state.left_s:.0f} s left")
    return "  |  ".join(parts)


def _line(state: RunProgress) -> Table:
    line = Table.grid(padding=(0, 2))
    done = (max(state.run - 1, 0) + (state.finished / state.flows if state.flows else 0)) / max(state.runs, 1)
    line.add_row(ProgressBar(total=1.0, completed=done, width=24), Text(_words(state)))
    return line


def print_restart(restart: Restart) -> None:
    """Print a line on a part of the lab that ended and is back."""
    progress.print(restart.words, markup=False, soft_wrap=True)


class _Ending(BaseException):
    """A signal that ends what is held came while an experiment ran."""


def print_page(url: str) -> None:
    """Say where the page of a controller is, and what it begins with. url: its API's."""
    progress.print(
        f"page {url}/watch    tour {url}/tour    begin an experiment {url}/compare",
        markup=False,
        soft_wrap=True,
    )


def print_attempt(attempt: Attempt) -> None:
    """Say that a submitted experiment runs, or how it ended."""
    why = f": {attempt.error}" if attempt.error else ""
    progress.print(
        f"experiment {attempt.experiment} ({attempt.name}) {_STATES[attempt.state]}{why}",
        markup=False,
        soft_wrap=True,
    )


def hold(deployment: Deployment, queue: HeldQueue) -> None:
    """Keep a fabric up until Ctrl-C, SIGTERM, or until a part of it dies again and again (an error that names it).

    queue: what is submitted to its controller meanwhile is run.
    """
    done = Ending()
    working = False

    def end(number: int, frame: object) -> None:
        nonlocal working
        done.set()
        if working:
            working = False  # asking twice must not cut short what follows
            raise _Ending

    old = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        progress.print(f"lab {deployment.lab.lab_id} is up; API {deployment.client.url}", markup=False)
        print_page(deployment.client.url)
        progress.print(
            "elsewhere:  ./capstan exec h1 -- ping h2    ./capstan scheme caps    Ctrl-C here takes it down",
            markup=False,
        )
        while not done.wait(1.0):
            deployment.check()
            working = True
            with suppress(ControllerError):  # a controller that does not come back is found by the next check
                queue.work_off()
            working = False
    except _Ending:
        pass
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
