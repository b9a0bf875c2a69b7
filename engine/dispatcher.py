"""The engine: starts workers while experiments wait, marks what lost workers leave, puts sweeps together."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, get_args

from sqlalchemy.exc import SQLAlchemyError

from controller.live.event_log import (
    ExperimentChanged,
    ExperimentEnded,
    ExperimentProgress,
    ExperimentSubmitted,
)
from controller.process.control_thread import ControlThread
from controller.store.experiments import NotFoundError, StateError
from controller.store.queue import Claimed, ExperimentQueue
from controller.store.queue_order import Waiting
from controller.store.queue_rows import AtWork, Change
from engine.executors import OURS, Order, WorkerEnd, Workers, failure_words, new_name
from engine.progress import LEASE_S, ProgressView, WorkerReports
from engine.submission import Submission
from engine.sweep_summary import sweep_summary
from engine.turns import Kind, cores_each, turn
from engine.worker_client import Takes
from engine.worker_report import WorkerReportBody
from engine.worker_secret import believed_api

LOOK_S: Final = 0.5
ANNOUNCE_EVERY_S: Final = 1.0
"""Progress is an event at most this often, for each submission."""
AGAIN_S: Final = 5.0
"""After a worker that ended before it took anything, another is started this much later."""
AT_HAND_S: Final = 30.0
"""A worker that others started, and that has asked for a lab's experiment within this time, is there for the next."""
MOST_WORDS: Final = 500
"""Characters of what a worker says of itself: each report may be an event."""
MOST_WAITING: Final = 10_000
"""Jobs that wait: experiments and points of sweeps. Each costs the database its spec."""
ELSEWHERE: Final = (
    "another controller runs what is queued in this database: end it, or begin this one with other --data"
)
OVER: Final = ("finished", "failed", "cancelled", "interrupted")
_KINDS: Final[dict[Takes, Kind]] = {"labs": "lab", "simulations": "simulation"}
_LOG: Final = logging.getLogger("capstan.engine")


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """What is going on and can be watched. api: where its own controller listens, on this machine; None: it goes on
    on the fabric of this controller."""

    experiment: int
    parent: int | None
    api: str | None


@dataclass(slots=True)
class _Started:
    name: str
    kind: Kind
    future: Future[WorkerEnd]
    claimed: bool = False


class Engine:
    """One queue and its workers, from `start` to `stop`. on_event: takes events.

    secret: what a worker's report has to show, or the address that it names is not believed.
    """

    def __init__(
        self, queue: ExperimentQueue, workers: Workers, on_event: Callable[[Any], None], secret: str
    ) -> None:
        self._queue = queue
        self._secret = secret.encode()
        self._workers = workers
        self._machine = socket.gethostname()
        self._on_event = on_event
        self._reports = WorkerReports(time.monotonic())
        self._order: Order | None = None
        self._started: dict[str, _Started] = {}
        self._announced_at: dict[int, float] = {}
        self._paused = ""
        self._unreachable = ""
        self._not_before = 0.0
        self._labs_asked_for_at = -AT_HAND_S
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._closing = self._standby = False
        self._thread: threading.Thread | None = None
        self._trouble = ""

    @property
    def queue(self) -> ExperimentQueue:
        """Return the queue of the store."""
        return self._queue

    @property
    def reports(self) -> WorkerReports:
        """Return what workers have reported."""
        return self._reports

    def start(self, order: Order) -> None:
        """Begin: workers are as *order*, but for their names."""
        self._order = order
        self._thread = ControlThread(self._run, "engine")
        self._thread.start()

    def stop(self) -> None:
        """End the workers that are ours alone; what they were at waits to be gone on with."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._workers.close()
            try:
                self._reap()
            except SQLAlchemyError as error:  # the next start marks them
                _LOG.error("the queue cannot be written: %s", error)
            self._queue.lock.give_up()

    # For the API

    def submit(self, submission: Submission) -> int:
        """Queue it; returns its number. Raises StateError if too many wait."""
        waiting, _ = self._queue.waiting()
        if waiting >= MOST_WAITING:
            raise StateError(f"{waiting} experiments and points of sweeps wait: submit it when some have run")
        number = self._queue.submit(submission.job, submission.points)
        self._on_event(ExperimentSubmitted(number, submission.job.name, "queued", len(submission.points)))
        self._wake.set()
        return number

    def cancel(self, number: int) -> None:
        """Cancel a job. Raise NotFoundError, StateError."""
        self._announce(self._queue.cancel(number))

    def rerun(self, number: int) -> None:
        """Queue a job anew. Raise NotFoundError, StateError."""
        self._announce(self._queue.rerun(number))
        self._wake.set()

    def claim(self, worker: str, fabric: str, takes: Takes = "all") -> Claimed | None:
        """Return something to do for a worker, unless we are about to end, or it is a controller's and another
        kind's turn.
        """
        if self._closing or self._standby:
            return None
        worker = worker[:MOST_WORDS]
        with self._lock:
            mine = self._started.get(worker.partition("@")[0])
        kind = mine.kind if mine is not None else _KINDS.get(takes) if worker.startswith(OURS) else None
        if kind is not None and kind != self._turn(self._queue.backlog(), self._beside()):
            return None
        if mine is not None:  # Dask begins a task anew whose machine has gone
            self._lose_all(mine.name, "its worker ended, and was started again")
        claim = self._queue.claim(worker, fabric, None if takes == "all" else takes == "simulations")
        if takes != "simulations":
            self._labs_asked_for_at = time.monotonic()
        if claim is None:
            return None
        claimed, changes = claim
        if mine is not None:
            mine.claimed = True
        self._paused = ""
        first = WorkerReportBody(stage="starting", attempt=claimed.attempt, worker=worker)
        self._reports.put(claimed.experiment, first, time.monotonic())
        self._announce(changes)
        return claimed

    def report(self, number: int, report: WorkerReportBody) -> bool:
        """Take a worker's report. Return whether it is to go on. Raises NotFoundError."""
        if not self._queue.going_on(number, report.attempt):
            return False
        report = replace(
            report,
            worker=report.worker[:MOST_WORDS],
            stage=report.stage[:MOST_WORDS],
            api=believed_api(report, self._secret),
            secret="",
        )
        now = time.monotonic()
        self._reports.put(number, report, now)
        submission = self._queue.parent(number) or number
        if now - self._announced_at.get(submission, 0.0) >= ANNOUNCE_EVERY_S:
            self._announced_at[submission] = now
            self._on_event(ExperimentProgress(submission, asdict(self.progress(submission))))
        return True

    def end(
        self,
        number: int,
        attempt: int,
        state: Literal["finished", "failed", "interrupted"],
        *,
        summary: dict[str, Any] | None,
        error: str,
    ) -> None:
        """End a worker's attempt. Raise NotFoundError, StateError."""
        again = self._closing and state == "interrupted"
        self._announce(
            self._queue.end(
                number,
                attempt,
                "queued" if again else state,
                summary=summary,
                error=error,
                stopping=self._closing,
            )
        )
        self._reports.forget(number)
        self._wake.set()

    def progress(self, number: int) -> ProgressView:
        """Return the progress of a submission. Raises NotFoundError."""
        rows = self._queue.standing(number)
        _, order = self._queue.waiting()
        workers = self._workers.slots(_kind(rows[0]["simulated"]))
        return self._reports.progress(rows, order, workers, time.time())

    def current_run(self) -> CurrentRun | None:
        """Return what runs in a lab of this machine, the oldest first; None if nothing does, or has its lab up."""
        for job in self._queue.active():
            number, report = job.experiment, self._reports.newest(job.experiment)
            if report is None or report.attempt != job.attempt:
                continue
            if report.here or report.api is not None:
                return CurrentRun(number, self._queue.parent(number), None if report.here else report.api)
        return None

    def state(self) -> dict[str, Any]:
        """Return the engine itself: where workers run, what they are at, what waits."""
        running = {self._queue.parent(job.experiment) or job.experiment for job in self._queue.active()}
        waiting = [one.submission for one in self._queue.backlog() if one.submission not in running]
        return {
            "executor": self._workers.kind,
            "address": self._workers.address,
            "workers": self._lab_workers(),
            "simulation_workers": self._workers.slots("simulation"),
            "running": sorted(running),
            "queued": [] if self._standby else waiting,
            "paused": (ELSEWHERE if self._standby else "")
            or self._unreachable
            or self._paused
            or self._without_worker()
            or None,
        }

    # The thread

    def _run(self) -> None:
        while not self._closing:
            trouble = ""
            try:
                self._standby = not self._queue.lock.take()
                if not self._standby:  # else what runs reports to another controller
                    trouble = self._look()
            except SQLAlchemyError as error:
                trouble = f"the queue's database: {str(error).splitlines()[0]}"
            except Exception as error:
                trouble = f"{type(error).__name__}: {error}"
            self._note_trouble(trouble)
            self._wake.wait(LOOK_S)
            self._wake.clear()

    def _look(self) -> str:
        """See to all that is queued, or at work; return why no worker can be had, or the empty string."""
        self._reap()
        self._expire()
        self._complete()
        self._unreachable = self._workers.problem()
        if not self._unreachable:
            self._start_workers()
        return self._unreachable

    def _note_trouble(self, text: str) -> None:
        """Log it once, not twice a second."""
        if text and text != self._trouble:
            _LOG.error("%s", text)
        self._trouble = text

    def _reap(self) -> None:
        """Collect workers that have ended, and what they left undone."""
        for started in [started for started in list(self._started.values()) if started.future.done()]:
            words = ""
            if not started.future.cancelled():  # else its cluster is out of reach, where it may go on
                words = failure_words(started.future)
                self._lose_all(started.name, f"its worker ended{words}")
            with self._lock:
                del self._started[started.name]
            if not started.claimed and words:
                self._paused = f"a worker ended before it took anything{words}"
                self._not_before = time.monotonic() + AGAIN_S
                _LOG.error("%s", self._paused)

    def _expire(self) -> None:
        """End what is at work somewhere, but has not reported for too long."""
        now = time.monotonic()
        for job in self._queue.active():
            if job.name not in self._started and self._reports.lost(job.experiment, now):
                why = f"its worker {job.worker} has not reported for {LEASE_S:g} s"
                self._lose(job.experiment, job.attempt, why)

    def _lose_all(self, name: str, why: str) -> None:
        for job in self._queue.active():
            if job.name == name:
                self._lose(job.experiment, job.attempt, why)

    def _lose(self, number: int, attempt: int, why: str) -> None:
        state: Literal["queued", "interrupted"] = "queued" if self._closing else "interrupted"
        try:
            changes = self._queue.end(number, attempt, state, error="" if self._closing else why)
        except (NotFoundError, StateError):
            return  # it has reported its end just now
        self._reports.forget(number)
        self._announce(changes)

    def _complete(self) -> None:
        for number, spec, points in self._queue.whole():
            try:
                summary, error = sweep_summary(spec, points), ""
            except Exception as why:  # nothing has checked what workers sent
                summary, error = None, f"its points cannot be put together: {why!r}"
            self._announce(self._queue.complete(number, summary, error))

    def _start_workers(self) -> None:
        backlog = self._queue.backlog()
        if not backlog or time.monotonic() < self._not_before or self._order is None:
            return
        beside = self._beside()
        kind = self._turn(backlog, beside)
        if kind is None:
            return
        waiting = sum(waiting_jobs.jobs for waiting_jobs in backlog if _kind(waiting_jobs.simulated) == kind)
        slots = self._workers.slots(kind)
        busy = {job.name for job in beside} | set(self._started)
        idle = sum(not started.claimed for started in self._started.values())
        cores = cores_each(slots, waiting, self._workers.cores())
        for _ in range(min(waiting - idle, slots // cores - len(busy))):
            order = replace(self._order, name=new_name(), simulations=kind == "simulation", cores=cores)
            with self._lock:
                self._started[order.name] = _Started(order.name, kind, self._workers.start(order))

    def _turn(self, backlog: Sequence[Waiting], beside: Sequence[AtWork]) -> Kind | None:
        """Return the kind of job that our workers may begin now; None: neither kind."""
        active = {_kind(job.simulated) for job in beside}
        with self._lock:
            active |= {started.kind for started in self._started.values()}
        slots: dict[Kind, int] = {kind: self._workers.slots(kind) for kind in get_args(Kind)}
        return turn([_kind(waiting.simulated) for waiting in backlog], active, slots)

    def _beside(self) -> list[AtWork]:
        """Return what takes our workers' time: what others do on this machine, and an earlier controller's workers."""
        return [job for job in self._queue.active() if job.name.startswith(OURS) or job.is_on(self._machine)]

    def _without_worker(self) -> str:
        """Return why queued labs wait, if no worker takes labs; else the empty string."""
        if self._lab_workers() or all(waiting.simulated for waiting in self._queue.backlog()):
            return ""
        return "no worker of this controller takes labs: ./capstan work does, as root on a machine for labs"

    def _lab_workers(self) -> int:
        """Return how many labs may run at the same time: a worker that others started counts while it asks for work."""
        if own := self._workers.slots("lab"):
            return own
        if time.monotonic() - self._labs_asked_for_at < AT_HAND_S:
            return 1
        in_labs = {job.name for job in self._queue.active() if not job.simulated}
        with self._lock:
            return int(bool(in_labs - set(self._started)))

    def _announce(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.state in OVER:
                self._announced_at.pop(change.experiment, None)
                self._on_event(
                    ExperimentEnded(change.experiment, change.name, change.state, change.error, change.parent)
                )
            else:
                self._on_event(
                    ExperimentChanged(
                        change.experiment, change.parent, change.name, change.state, change.error
                    )
                )


def _kind(simulated: bool) -> Kind:
    return "simulation" if simulated else "lab"
