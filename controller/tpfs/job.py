"""One computation of types, in a process of its own: a controller has to answer switches within milliseconds.

Records come in a file, for they are many; the process lives as long as the learner that asks it, and no longer.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from controller.process.parent_death import end_with
from controller.schemes.scheme import Printed
from controller.tpfs.records import RECORD

NICE: Final = 10


@dataclass(frozen=True, slots=True)
class TypesRequest:
    """records: a file of `RECORD`s; addresses: what the numbers in them stand for; the others: `flow_types`."""

    records: Path
    addresses: Sequence[str]
    default: tuple[int, ...]
    load: float
    delta: float | None
    printed: Printed | None = None


class Job:
    """Asked by one thread, which outlives the process."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def prepare(self) -> None:
        """Start the process now, if there is none: what it loads takes a second, on a busy machine ten."""
        if self._pool is None:
            self._submit(_load)

    def ask(self, request: TypesRequest) -> Future[object]:
        """Return the `FlowTypes` of the records, or None; in the background."""
        return self._submit(answer, request)

    def _submit(self, work: Callable[..., object], *arguments: object) -> Future[object]:
        for _ in range(2):
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    1, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(os.getpid(),)
                )
            with contextlib.suppress(BrokenProcessPool):
                return self._pool.submit(work, *arguments)
            self.close()  # it was killed; another one
        raise RuntimeError("the process that finds types of flows does not start")

    def processes(self) -> list[int]:
        """Return its process id; empty while there is none."""
        return [process.pid for process in self._running()]

    def _running(self) -> list[Any]:
        return [] if self._pool is None else list((self._pool._processes or {}).values())

    def close(self) -> None:
        """End the process, whatever it does."""
        processes = self._running()
        pool, self._pool = self._pool, None
        if pool is None:
            return
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
            process.join()


def _load() -> None:
    """Import, in the process, what takes seconds, before it is asked for."""
    import scipy.optimize
    import scipy.sparse  # noqa: F401
    import sklearn.cluster  # noqa: F401

    import controller.tpfs.types  # noqa: F401


def answer(request: TypesRequest) -> object:
    """Return the types of the records; runs in the process."""
    from controller.tpfs.types import flow_types

    records = np.fromfile(request.records, dtype=RECORD)
    return flow_types(
        records,
        request.addresses,
        request.default,
        load=request.load,
        delta=request.delta,
        printed=request.printed,
    )


def _begin(parent: int) -> None:
    """End with the controller, run at low priority, and discard the solver's output."""
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
