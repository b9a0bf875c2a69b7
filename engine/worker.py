"""A worker: a process that takes what is to be run from a controller, runs it in labs of its own, and reports."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from capstan_client.errors import CapstanError, ControllerError
from engine.kept_runs import kept_run
from engine.progress import WorkerReportBody
from engine.worker_client import WorkerClient
from experiments.results.document import Run, json_text, machine
from experiments.run.deployment import Deployment
from experiments.run.experiment import Experiment
from experiments.run.progress import Progress, Steps
from experiments.spec.spec import Spec, spec_from_dict
from workloads.plan import Plan

BEAT_S: Final = 0.5
SLOTS: Final = Path("/run/capstan-labs")
"""A directory of root's own: a user who can open a slot's file can hold it."""
SLOT_WAIT_S: Final = 0.5
STOP: Final = signal.SIGUSR1
"""What the thread that receives a cancellation sends to the one that runs the experiment."""


class SlotError(CapstanError, RuntimeError):
    """The directory of the slots is not ours alone; the text says what to do."""


class Stopped(BaseException):
    """The attempt is to stop: it was cancelled. No error of the experiment's, so nothing in it catches this."""


@contextmanager
def machine_slot(labs: int, directory: Path = SLOTS) -> Iterator[None]:
    """Hold one of *labs* places on this machine, waiting for one; a process that dies gives it up.

    directory: made if it is missing, for its owner alone. Raises SlotError, OSError.
    """
    _own(directory)
    while True:
        for number in range(labs):
            handle = os.open(
                directory / f"capstan-lab-{number}",
                os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
                0o600,
            )
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            try:
                yield
            finally:
                os.close(handle)
            return
        time.sleep(SLOT_WAIT_S)


def _own(directory: Path) -> None:
    """Have *directory*, which no other user may enter. Raises SlotError if it is another's."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise SlotError(
            f"{directory} is no directory of our own, so others could hold the labs' slots: remove it"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(0o700)


class Worker:
    """Runs what it is given until there is nothing more. name: as the controller calls it."""

    def __init__(self, client: WorkerClient, name: str) -> None:
        self._client = client
        self._name = f"{name}@{socket.gethostname()}:{os.getpid()}"
        self._deployment: Deployment | None = None
        self._fabric = ""

    def run(self) -> int:
        """Returns how many attempts it made. Raises ControllerError if the controller stays away."""
        attempts = 0
        try:
            while (claim := self._client.claim(self._name, self._fabric)) is not None:
                attempts += 1
                self._attempt(claim)
        finally:
            self._take_down()
        return attempts

    def _attempt(self, claim: Mapping[str, Any]) -> None:
        number, attempt = int(claim["experiment"]), int(claim["attempt"])
        beat = Heartbeat(self._client, number, attempt, self._name)
        state, error, summary = "finished", "", None
        try:
            with beat:
                summary = self._experiment(claim, beat)
        except Stopped:
            state, error = "interrupted", "it was asked to stop"
        except ControllerError as problem:
            state, error = "failed", str(problem)
        except (RuntimeError, ValueError, OSError) as problem:
            state, error = "failed", str(problem) or type(problem).__name__
        except BaseException as end:
            self._take_down()
            with suppress(ControllerError):
                self._client.end(number, attempt, "interrupted", error=f"its worker was ended: {end}")
            raise
        if state != "finished":
            self._take_down()  # who knows what state it is in
        self._client.end(number, attempt, state, summary, error)

    def _experiment(self, claim: Mapping[str, Any], beat: Heartbeat) -> dict[str, Any]:
        spec = spec_from_dict(claim["spec"])
        steps = Steps([spec], beat.progress)
        if self._deployment is not None and self._fabric == claim["fabric"]:
            self._deployment.take(spec)
        else:
            self._take_down()
            self._deployment = Deployment(spec, on_stage=steps.stage)
            beat.lab = self._deployment.lab.lab_id
            self._deployment.start()
            self._fabric = claim["fabric"]
        beat.lab = self._deployment.lab.lab_id
        record = _Submitted(self._client, claim)
        Experiment(spec, self._deployment, steps, steps.plans[0], lambda document, runs: Path(), record).run()
        return record.summary

    def _take_down(self) -> None:
        deployment, self._deployment, self._fabric = self._deployment, None, ""
        if deployment is not None:
            deployment.stop()


class Heartbeat:
    """Reports where an attempt is while it is within, and stops it (by `Stopped`) when it is not to go on."""

    def __init__(self, client: WorkerClient, number: int, attempt: int, worker: str) -> None:
        self.lab: str | None = None
        self._client = WorkerClient(client.url, client.token)  # a session of its own: this is another thread
        self._number = number
        self._attempt = attempt
        self._worker = worker
        self._progress: Progress | None = None
        self._ended = threading.Event()
        self._armed = False
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def progress(self, progress: Progress) -> None:
        """Where it is now."""
        self._progress = progress

    def __enter__(self) -> Heartbeat:
        signal.signal(STOP, self._stop)
        self._armed = True
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._armed = False
        self._ended.set()
        self._thread.join()
        self._client.close()

    def _stop(self, number: int, frame: object) -> None:
        if self._armed:
            self._armed = False
            raise Stopped

    def _beat(self) -> None:
        while not self._ended.is_set():
            try:
                go_on = self._client.report(self._number, self._report())
            except ControllerError as error:
                go_on = error.status != 404  # one that is away may come back
            if not go_on:
                os.kill(os.getpid(), STOP)
                return
            self._ended.wait(BEAT_S)

    def _report(self) -> WorkerReportBody:
        now = self._progress
        if now is None:
            return WorkerReportBody(self._attempt, self._worker, "starting", lab=self.lab)
        return WorkerReportBody(
            attempt=self._attempt,
            worker=self._worker,
            stage=now.stage,
            run=now.run,
            runs=now.runs,
            finished=now.finished,
            failed=now.failed,
            flows=now.flows,
            elapsed_s=now.elapsed_s,
            left_s=now.left_s,
            lab=self.lab,
        )


class _Submitted:
    """The record of an attempt, with the controller that it was claimed from; the worker reports its end."""

    def __init__(self, client: WorkerClient, claim: Mapping[str, Any]) -> None:
        self.summary: dict[str, Any] = {}
        self._client = client
        self._number = int(claim["experiment"])
        self._attempt = int(claim["attempt"])
        self._has = {run["run"] for run in claim["kept"]}

    def begin(self, spec: Spec, versions: Mapping[str, str]) -> int:
        self._client.equip(self._number, self._attempt, versions, machine())
        return self._number

    def kept(self, plans: Sequence[Plan]) -> Iterable[Run]:
        if not self._has:
            return
        for run in self._client.results(self._number)["runs"]:
            flows = self._client.flows_of(self._number, run["id"])
            modes = self._client.modes_of_run(self._number, run["id"])
            yield kept_run(run, flows, modes, plans[run["repeat"]])

    def add(self, run: Run, body: Mapping[str, Any]) -> int:
        modes = [{name: one[name] for name in ("at_s", "leaf", "mode", "cause")} for one in run.modes]
        own = {"modes": modes, "attempt": self._attempt}
        return int(self._client.add_run(self._number, {**body, **own})["id"])

    def finish(self, document: Mapping[str, Any]) -> None:
        self.summary = json.loads(json_text(document))

    def fail(self, error: BaseException) -> None:
        pass
