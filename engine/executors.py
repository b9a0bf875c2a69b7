"""Where workers run: on this machine, or on those of a Dask cluster. Both are executors of `concurrent.futures`."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from capstan_client.errors import CapstanError
from capstan_client.http import TOKEN_VARIABLE
from engine.turns import Kind

ROOT: Final = Path(__file__).parent.parent
TAIL_BYTES: Final = 2000
STOP_S: Final = 30.0
"""How long a worker may take to take its lab down."""
PATIENCE_S: Final = 60.0
CONNECT_AGAIN_S: Final = 5.0
"""Between two tries to reach a Dask scheduler that has gone."""
OURS: Final = "w-"
"""What names of workers begin with that a controller starts, and of no others."""
SECRET_VARIABLE: Final = "CAPSTAN_WORKER_SECRET"
"""Of the environment: what a worker on its controller's machine shows, so that its lab's address is believed."""
_OWN_GROUP: Final[int] = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""On Windows, what a session is elsewhere."""


class ExecutorError(CapstanError, ValueError):
    """Workers cannot be had; the text says why."""


@dataclass(frozen=True, slots=True)
class Order:
    """One worker to be: its name, the API that it reports to, and how many labs its machine may have at once.

    patience_s: how long a controller may be away, or its database, before the worker gives up. simulations: it takes
    nothing else, and has no lab; cores: how many runs of a simulation at once. authority: PEM text that the API's
    certificate is checked by; None: the machine's own authorities. secret: what makes its lab's address believed, for
    workers on the controller's machine alone; None: it is not.
    """

    name: str
    api: str
    token: str | None = None
    labs: int = 1
    patience_s: float = PATIENCE_S
    simulations: bool = False
    cores: int = 1
    authority: str | None = None
    secret: str | None = None

    def arguments(self) -> list[str]:
        """Return the arguments of `capstan work`, without token and secret: every user of the machine sees those."""
        common = ["--api", self.api, "--name", self.name, "--patience-s", str(self.patience_s)]
        if self.simulations:
            return [*common, "--simulations", "--cores", str(self.cores)]
        return [*common, "--labs-only", "--labs", str(self.labs)]


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a worker process ended. code: as of `subprocess`; tail: the end of what it printed."""

    code: int
    tail: str


def work(
    order: Order, on_start: Callable[[subprocess.Popen[bytes]], None] = lambda process: None
) -> WorkerEnd:
    """Run one worker process to its end, and return how it ended, on any machine with Capstan at the same place."""
    own = {TOKEN_VARIABLE: order.token, SECRET_VARIABLE: order.secret}
    variables = {name: value for name, value in os.environ.items() if name not in own}
    variables.update((name, value) for name, value in own.items() if value is not None)
    argv = [*launcher(), "work", *order.arguments()]
    with tempfile.TemporaryFile() as log, tempfile.NamedTemporaryFile("w", suffix=".pem") as authority:
        if order.authority is not None:  # as text, for the worker's machine may be another one
            authority.write(order.authority)
            authority.flush()
            argv += ["--authority", authority.name]
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=variables,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the controller, which ends us
            creationflags=_OWN_GROUP,
        )
        on_start(process)
        code = process.wait()
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - TAIL_BYTES))
        return WorkerEnd(code, log.read().decode(errors="replace").strip())


def failure_words(future: Future[WorkerEnd]) -> str:
    """Return how a worker failed; the empty string if it did not."""
    error = future.exception()
    if error is not None:
        return f": {type(error).__name__}: {error}"
    end = future.result()
    if end.code == 0:
        return ""
    how = f"killed by signal {-end.code}" if end.code < 0 else f"exit code {end.code}"
    return f" ({how}): {end.tail[-500:]}" if end.tail else f" ({how})"


def launcher() -> list[str]:
    """Return what begins a command of Capstan: a checkout's launcher, else, as in a wheel, this Python."""
    own = ROOT / "capstan"
    return [str(own)] if own.is_file() else [sys.executable, "-P", "-m", "cli"]


def new_name() -> str:
    """Return a name for a worker, unlike all others."""
    return f"{OURS}{secrets.token_hex(4)}"


class Workers(Protocol):
    """Something that runs workers."""

    kind: str
    address: str | None
    on_this_machine: bool

    def slots(self, kind: Kind) -> int:
        """Return how many of a kind may run at the same time."""

    def cores(self) -> int:
        """Return how many cores a single worker has, whichever of their machines it runs on."""

    def problem(self) -> str:
        """Return why no worker can be had now, and what to do; empty: they can be had. May take seconds."""

    def start(self, order: Order) -> Future[WorkerEnd]:
        """Start a worker; return a future of its end."""

    def close(self) -> None:
        """End those that are ours alone, and wait for them."""


class LocalWorkers:
    """Processes of this machine, at most *labs*, or *simulations*, at a time; 0: others start them (`capstan work`)."""

    kind: str = "local"
    address: str | None = None
    on_this_machine: bool = True

    def __init__(self, labs: int, simulations: int = 0) -> None:
        self._slots: dict[Kind, int] = {"lab": labs, "simulation": simulations}
        self._executor: Executor = ThreadPoolExecutor(max(labs, simulations, 1), thread_name_prefix="worker")
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closing = False

    def slots(self, kind: Kind) -> int:
        """Return how many workers of a kind run at once on this machine."""
        return self._slots[kind]

    def cores(self) -> int:
        """Return how many cores a worker has: all that simulations may use on this machine."""
        return self._slots["simulation"]

    def problem(self) -> str:
        """Return the empty string: this machine is there."""
        return ""

    def start(self, order: Order) -> Future[WorkerEnd]:
        """Start a worker as a process of this machine; return a future of its end."""
        return self._executor.submit(self._work, order)

    def _work(self, order: Order) -> WorkerEnd:
        started: list[subprocess.Popen[bytes]] = []

        def keep(process: subprocess.Popen[bytes]) -> None:
            with self._lock:
                self._processes.add(process)
                started.append(process)
                if self._closing:
                    process.terminate()

        try:
            return work(order, keep)
        finally:
            with self._lock:
                self._processes.difference_update(started)

    def close(self) -> None:
        """End all workers; each has `STOP_S` to take its lab down."""
        with self._lock:
            self._closing = True
            processes = list(self._processes)
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()  # what it leaves, its reaper takes down
        self._executor.shutdown()


class DaskWorkers:
    """Workers on a Dask cluster. They outlive this controller: it finds them at work when it is back."""

    kind: str = "dask"

    def __init__(self, address: str, timeout_s: float = 5.0, in_clear: bool = False) -> None:
        """Connect. Raise ExecutorError if Dask is not installed, or nothing answers there.

        in_clear: it may be reached without TLS on another machine, too.
        """
        if not (in_clear or address.startswith("tls://") or _is_loopback(address)):
            raise ExecutorError(
                f"the Dask scheduler at {address} would get the API's token in clear, and who reaches it runs programs "
                "on its workers: start it with certificates and give tls://ADDRESS:PORT (DASK_DISTRIBUTED__COMM__TLS "
                "names ours), or add --dask-without-tls where nothing else reaches that network"
            )
        self.address: str | None = address
        self.on_this_machine: bool = _is_loopback(address)
        self._timeout_s = timeout_s
        self._connect_again_at = 0.0
        self._why = ""
        self._connect(address)

    def _connect(self, address: str) -> None:
        """Raise ExecutorError."""
        try:
            from distributed import Client
        except ImportError:
            raise ExecutorError(
                "Dask is not installed: .venv/bin/pip install distributed (here and where its workers run)"
            ) from None
        try:
            self._client: Any = Client(address, timeout=self._timeout_s, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ExecutorError(f"no Dask scheduler answers at {address}: {error}") from None
        except TypeError as error:  # what Dask raises without certificates
            raise ExecutorError(f"Dask has no certificates of ours for {address}: {error}") from None
        self._executor: Executor = self._client.get_executor(pure=False, retries=0)

    def problem(self) -> str:
        """Return why there is no scheduler; a client that has lost its own is of no more use, so another connects."""
        if self._client.status not in ("closing", "closed"):
            return ""
        if time.monotonic() >= self._connect_again_at:
            try:
                self._connect(self.address or "")
            except ExecutorError as error:
                self._connect_again_at = time.monotonic() + CONNECT_AGAIN_S
                self._why = f"{error}; start it again"
            else:
                self._why = ""
        return self._why

    def slots(self, kind: Kind) -> int:
        """Return the cluster's workers for labs, and their threads for simulations: Dask starts one a core.

        0 without a scheduler.
        """
        threads = self._threads()
        return len(threads) if kind == "lab" else sum(threads)

    def cores(self) -> int:
        """Return the threads of the cluster's smallest worker, as Dask chooses where each runs; 0 without any."""
        return min(self._threads(), default=0)

    def _threads(self) -> list[int]:
        """Return how many threads each worker of the cluster has; none without a scheduler."""
        try:
            workers = self._client.scheduler_info(n_workers=-1).get("workers", {})
        except (RuntimeError, OSError):  # it has gone, and its loop with it
            return []
        return [worker["nthreads"] for worker in workers.values()]

    def start(self, order: Order) -> Future[WorkerEnd]:
        """Start a worker on a machine of the cluster; return a future of its end."""
        return self._executor.submit(work, order)

    def close(self) -> None:
        """Leave the cluster; its workers end when they cannot report."""
        with contextlib.suppress(Exception):  # whatever a cluster that is gone may raise
            self._client.close(timeout=2)


def _is_loopback(address: str) -> bool:
    """Return whether a scheduler's address (with or without tcp://, with a port) is of this machine alone."""
    host = urlsplit(address if "://" in address else f"tcp://{address}").hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
