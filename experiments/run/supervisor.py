"""Starts parts of a lab again when they end: a thread that waits for that, and acts on `Supervision`'s decisions."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol

from experiments.run.supervision import GiveUp, Restart, Supervision, how_ended
from experiments.run.traffic import log_tail
from loops.thread import LoopThread

_LOG: Final = logging.getLogger(__name__)
HELD_EVERY_S: Final = 0.5
"""How often the controller is asked whether the fault that keeps a part down has ended."""
STOP_S: Final = 10.0
"""How long starts that are under way may take to notice that they are not wanted any more."""


class Part(Protocol):
    """Something that is to run as long as the lab."""

    @property
    def name(self) -> str:
        """Return its name for people: "agent h3"."""

    @property
    def log(self) -> Path:
        """Return the file of its log."""

    @property
    def process(self) -> subprocess.Popen[Any] | None:
        """Return its newest process; None while it is down on purpose."""

    def held(self) -> bool:
        """Return whether a fault made on purpose keeps it down. May wait for the controller."""

    def was_held(self) -> bool:
        """Return whether a fault made on purpose ended its newest process, and is over since. May wait likewise."""

    def start(self) -> None:
        """Start it again; return when it is back. Raises RuntimeError, OSError."""


class _State(Enum):
    RUNNING = "runs"
    DOWN = "is down on purpose"
    ASKING = "has ended: a thread asks whether that was on purpose"
    HELD = "is kept down by a fault made on purpose"
    WAITING = "is to be started again"
    STARTING = "is being started by a thread"


_BUSY: Final = (_State.ASKING, _State.STARTING)


@dataclass(slots=True, eq=False)
class _Watched:
    part: Part
    state: _State = _State.DOWN
    process: subprocess.Popen[Any] | None = None
    """The part's process as it was seen last."""
    handle: int = -1
    """Its pidfd, while it runs."""
    due: float = 0.0
    """While HELD or WAITING: until when."""
    how: str = ""
    """How it ended; empty: by a fault made on purpose."""
    ended_at: float = 0.0


class Supervisor:
    """Parts are watched from `start` to `stop`. Raises nothing: `failure` says why it gave up.

    on_restart: gets each part that is back, in the supervisor's thread.
    """

    def __init__(self, parts: Iterable[Part], on_restart: Callable[[Restart], None]) -> None:
        self._watched = [_Watched(part) for part in parts]
        self._on_restart = on_restart
        self._supervision = Supervision()
        self._thread = LoopThread(
            "capstan-supervisor",
            self._open,
            self._close,
            subject="the lab's supervisor",
            errors_end=True,
            make_thread=self._failing_thread,
        )
        self._timer: asyncio.TimerHandle | None = None
        self._workers: list[threading.Thread] = []
        self._stopping = False
        self._restarts: list[Restart] = []
        self.failure: str | None = None
        """Why the lab is to end; None: it is not."""
        self.deaths = 0
        """Ends of parts until now that nothing on purpose explains."""

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Start nothing again from now on. Harmless if it was done before."""
        if self._stopping:
            return
        self._stopping = True
        self._thread.stop()
        deadline = time.monotonic() + STOP_S
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))

    def look_again(self) -> None:
        """Look at all parts: one was ended or started on purpose."""
        self._thread.post(self._look)

    @property
    def restarts(self) -> tuple[Restart, ...]:
        """Return all restarts until now, in the order in which parts were back."""
        return tuple(self._restarts)

    @property
    def complete(self) -> bool:
        """Return whether every part runs but those that are down on purpose."""
        return all(
            watched.state in (_State.DOWN, _State.HELD)
            # whether its fault goes on
            or (watched.state is _State.ASKING and not watched.how)
            or (
                watched.state is _State.RUNNING
                and watched.part.process is watched.process
                and _runs(watched.process)
            )
            for watched in self._watched
        )

    # in the thread

    def _failing_thread(self, work: Callable[[], object], name: str) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except Exception as error:
                _LOG.exception("the supervisor ends")
                self.failure = f"the lab's supervisor has failed: {error!r}; please report it"

        return threading.Thread(target=run, name=name, daemon=True)

    async def _open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._look)

    async def _close(self) -> None:
        self._close_handles()

    def _close_handles(self) -> None:
        for watched in self._watched:
            self._close_handle(watched)

    def _look(self) -> None:
        """Act on what became of all parts, and do so again when the next is due."""
        if self.failure is not None:
            self._close_handles()  # what ends now would wake the loop again and again
            return
        if self._stopping:
            return
        now = time.monotonic()
        for watched in self._watched:
            self._reconcile(watched, now)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = [watched.due for watched in self._watched if watched.state in (_State.HELD, _State.WAITING)]
        if due:
            self._timer = self._loop.call_at(min(due), self._look)

    def _take(self, result: Callable[[], None]) -> None:
        """Apply what a worker found out or did."""
        if not self._stopping and self.failure is None:
            result()
            self._look()

    def _reconcile(self, watched: _Watched, now: float) -> None:
        """Act on what became of the part's process."""
        if watched.state in _BUSY:
            return
        process = watched.part.process
        if process is None:
            self._close_handle(watched)
            watched.state, watched.process = _State.DOWN, None
            return
        if process is not watched.process:
            self._close_handle(watched)
            watched.state, watched.process = _State.RUNNING, process
            # another thread may have collected it
            with suppress(ProcessLookupError):
                if _runs(process):
                    watched.handle = os.pidfd_open(process.pid)
                    self._loop.add_reader(watched.handle, self._look)
        if watched.state is _State.RUNNING and not _runs(process):
            self._close_handle(watched)
            watched.how, watched.ended_at = how_ended(process.returncode), now
            self._look_after(watched, _State.ASKING, self._ask_held)
        elif watched.state is _State.HELD and now >= watched.due:
            self._look_after(watched, _State.ASKING, self._ask_held)
        elif watched.state is _State.WAITING and now >= watched.due:
            self._look_after(watched, _State.STARTING, self._begin)

    def _ask_held(self, watched: _Watched) -> Callable[[], None]:
        held = watched.part.held()
        # A fault may be over before the question about it is answered.
        on_purpose = held or (bool(watched.how) and watched.part.was_held())
        return lambda: self._decide(watched, held, on_purpose)

    def _decide(self, watched: _Watched, held: bool, on_purpose: bool) -> None:
        now = time.monotonic()
        if on_purpose:
            watched.how = ""
        if held:
            watched.state, watched.due = _State.HELD, now + HELD_EVERY_S
        elif not watched.how:  # its fault has ended
            watched.state, watched.due = _State.WAITING, now
        else:
            self._count(watched, now)

    def _count(self, watched: _Watched, now: float) -> None:
        """Have the part started again, or give up."""
        self.deaths += 1
        decision = self._supervision.ended(watched.part.name, now)
        if isinstance(decision, GiveUp):
            self.failure = (
                f"{watched.part.name} ended {decision.deaths} times within {decision.within_s:.1f} s, "
                f"the last time: {watched.how}{log_tail(watched.part.log)}"
            )
        else:
            watched.state, watched.due = _State.WAITING, decision.at

    def _begin(self, watched: _Watched) -> Callable[[], None]:
        try:
            watched.part.start()
        except (RuntimeError, OSError) as error:
            problem = str(error) or type(error).__name__
            return lambda: self._not_back(watched, problem)
        return lambda: self._back(watched)

    def _back(self, watched: _Watched) -> None:
        if watched.part.process is None:  # it was ended on purpose meanwhile
            watched.state, watched.process = _State.DOWN, None
            return
        watched.state = _State.RUNNING
        if watched.how:
            restart = Restart(
                watched.part.name, watched.how, watched.ended_at, time.monotonic() - watched.ended_at
            )
            self._restarts.append(restart)
            self._on_restart(restart)

    def _not_back(self, watched: _Watched, problem: str) -> None:
        watched.process, watched.how = watched.part.process, f"it could not be started: {problem}"
        if watched.process is None:  # it was ended on purpose meanwhile
            watched.state = _State.DOWN
        else:
            self._count(watched, time.monotonic())

    def _look_after(
        self, watched: _Watched, state: _State, work: Callable[[_Watched], Callable[[], None]]
    ) -> None:
        """Have *work* done in a thread of its own, and what it returns in ours."""
        watched.state = state

        def run() -> None:
            self._thread.post(self._take, work(watched))

        worker = threading.Thread(target=run, name=f"capstan-{watched.part.name}", daemon=True)
        self._workers = [other for other in self._workers if other.is_alive()] + [worker]
        worker.start()

    def _close_handle(self, watched: _Watched) -> None:
        if watched.handle >= 0:
            self._loop.remove_reader(watched.handle)
            os.close(watched.handle)
            watched.handle = -1


def _runs(process: subprocess.Popen[Any] | None) -> bool:
    return process is not None and process.poll() is None
