"""A worker: a process that takes what is to be run from a controller, runs it in labs of its own, and reports."""

from __future__ import annotations

import _thread
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from capstan_client.errors import CapstanError, ControllerError
from controller.process.ignored_exceptions import on_ignored
from engine.submitted_record import SubmittedRecord
from engine.worker_client import Takes, WorkerClient
from engine.worker_report import WorkerReportBody
from experiments.run.progress import RunProgress

if TYPE_CHECKING:
    from engine.lab_runs import Labs
    from simulation.link_samples import LinkSample

BEAT_S: Final = 0.5
SLOTS: Final = Path("/run/capstan-labs")
"""A directory of root's own: a user who can open a slot's file can hold it."""
SLOT_WAIT_S: Final = 0.5
NO_ROOM: Final = 507
"""Status where the controller keeps no more results."""
STOP: Final = signal.Signals(getattr(signal, "SIGUSR1", 0) or getattr(signal, "SIGBREAK"))  # noqa: B009 Windows' own
"""What the thread that receives a cancellation sends to the one that runs the experiment."""


class SlotError(CapstanError, RuntimeError):
    """The directory of the slots is not ours alone; the text says what to do."""


class Stopped(BaseException):
    """The attempt is to stop: it was cancelled. No error of the experiment's, so nothing in it catches this."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at an experiment: running, or how it ended: finished, failed (with the reason) or interrupted."""

    experiment: int
    name: str
    state: str
    error: str


@contextmanager
def machine_slot(labs: int, directory: Path = SLOTS) -> Iterator[None]:
    """Hold one of *labs* places on this machine, waiting for one; a process that dies gives it up.

    directory: made if it is missing, for its owner alone. Raises SlotError, OSError.
    """
    import fcntl  # Linux's, as labs are

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
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise SlotError(
            f"{directory} is not a directory of our own, so others could hold the labs' slots: remove it"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        directory.chmod(0o700)


class Worker:
    """Runs what it is given until there is nothing more. name: as the controller calls it.

    takes: what it takes; cores: how many runs of a simulation at once. labs: where it runs what needs a lab; None: in
    labs of its own. on_attempt: gets each attempt when it begins and when it is over. secret: what makes its labs'
    addresses believed at a controller on this machine; "": they are not.
    """

    def __init__(
        self,
        client: WorkerClient,
        name: str,
        *,
        takes: Takes = "all",
        cores: int = 1,
        labs: Labs | None = None,
        on_attempt: Callable[[Attempt], None] = lambda attempt: None,
        secret: str = "",
    ) -> None:
        self._client = client
        self._name = f"{name}@{socket.gethostname()}:{os.getpid()}"
        self._takes = takes
        self._cores = cores
        self._labs = labs
        self._on_attempt = on_attempt
        self._secret = secret

    def run(self) -> int:
        """Return how many attempts it made. Raise ControllerError if the controller stays away."""
        attempts = 0
        try:
            while (claim := self._client.claim(self._name, self._fabric, self._takes)) is not None:
                attempts += 1
                self._attempt(claim)
        finally:
            self._take_down()
        return attempts

    @property
    def _fabric(self) -> str:
        return "" if self._labs is None else self._labs.fabric

    def _attempt(self, claim: Mapping[str, Any]) -> None:
        number, attempt = int(claim["experiment"]), int(claim["attempt"])
        name = str(claim["spec"]["name"])
        self._on_attempt(Attempt(number, name, "running", ""))
        beat = Heartbeat(self._client, number, attempt, self._name, secret=self._secret)
        state, error, summary = "finished", "", None
        try:
            with beat:
                summary = self._experiment(claim, beat)
        except Stopped:
            beat.end()  # it may have come as that began
            state, error = "interrupted", "it was stopped"
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
        try:
            self._client.end(number, attempt, state, summary=summary, error=error)
        except ControllerError as problem:
            if problem.status != NO_ROOM:
                raise
            state, error = "failed", str(problem)
            self._client.end(number, attempt, state, error=error)
        self._on_attempt(Attempt(number, name, state, error))

    def _experiment(self, claim: Mapping[str, Any], beat: Heartbeat) -> dict[str, Any]:
        record = SubmittedRecord(self._client, claim)
        if claim["simulated"]:
            self._take_down()  # a lab's agents would take turns with the simulation
            from engine.simulated_runs import simulate_claim

            simulate_claim(claim, record, beat.progress, on_links=beat.links, cores=self._cores)
        else:
            if self._labs is None:
                from engine.lab_runs import LabRuns  # needs what a machine for simulations alone may lack

                self._labs = LabRuns()
            self._labs.run(claim, record, beat)
        return record.summary

    def _take_down(self) -> None:
        if self._labs is not None:
            self._labs.take_down()


def _send_stop() -> None:
    """Have the handler of `STOP` called in the main thread."""
    if hasattr(signal, "SIGUSR1"):
        os.kill(os.getpid(), STOP)
    else:  # on Windows os.kill would end the process
        _thread.interrupt_main(STOP)


class Heartbeat:
    """Reports where an attempt is while it is within, and stops it (by `Stopped`) when it is not to go on.

    A `Stopped` that Python ignored, as it does in `__del__`, is raised again half a second later.
    """

    def __init__(
        self, client: WorkerClient, number: int, attempt: int, worker: str, *, secret: str = ""
    ) -> None:
        self.lab: str | None = None
        self.api: str | None = None
        self.here = False
        self._client = WorkerClient(
            client.url, client.token, authority=client.authority
        )  # a session of its own: this is another thread
        self._number = number
        self._attempt = attempt
        self._worker = worker
        self._secret = secret
        self._progress = RunProgress("starting")
        self._links: LinkSample | None = None
        self._ended = threading.Event()
        self._armed = False
        self._ignored = ExitStack()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def progress(self, progress: RunProgress) -> None:
        """Report where it is now."""
        self._progress = progress

    def links(self, sample: LinkSample) -> None:
        """Report what links of a simulated run carry, once."""
        self._links = sample

    def has_lab(self, lab: str, api: str | None, here: bool = False) -> None:
        """Report the lab of this id from now on, and its controller's address once it is up.

        here: that controller is the one that is reported to.
        """
        self.lab, self.api, self.here = lab, api, here

    def __enter__(self) -> Heartbeat:
        signal.signal(STOP, self._stop)
        self._ignored.enter_context(on_ignored(Stopped, self._arm))
        self._armed = True
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Report no more, and stop nothing any more. Harmless if it was done before."""
        self._armed = False
        self._ended.set()
        self._thread.join()
        self._ignored.close()
        self._client.close()

    def _arm(self, _: Stopped) -> None:
        self._armed = True

    def _stop(self, number: int, frame: object) -> None:
        if self._armed:
            self._armed = False
            raise Stopped

    def _beat(self) -> None:
        go_on = True
        while not self._ended.is_set():
            if go_on:
                go_on = self._is_to_go_on()
            if not go_on:
                _send_stop()
            self._ended.wait(BEAT_S)

    def _is_to_go_on(self) -> bool:
        try:
            return self._client.report(self._number, self._report())
        except ControllerError as error:
            return error.status != 404  # one that is away may come back

    def _report(self) -> WorkerReportBody:
        links, self._links = self._links, None
        return WorkerReportBody(
            **asdict(self._progress),
            attempt=self._attempt,
            worker=self._worker,
            lab=self.lab,
            api=self.api,
            here=self.here,
            secret=self._secret,
            links=links,
        )
