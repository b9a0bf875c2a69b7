"""Types of flows while the controller runs: agents' records in, at every interval types out, without
delaying other threads.

One thread of its own takes what agents say (others only put it into a bounded queue), keeps it in memory and in the
store, and lets a process compute. Agents get types only if these differ from what they have.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from controller.process.control_thread import ControlThread
from controller.rare_log import RareLog
from controller.schemes.scheme import Priority, Scheme
from controller.tpfs.job import Job, TypesRequest
from controller.tpfs.record_store import RecordStore, StoredRecords
from controller.tpfs.records import memory_of
from controller.tpfs.types import LearntTypes, differ
from protocol import control
from protocol.priority import TypePriority

_LOG: Final = logging.getLogger("capstan.tpfs")
MOST_BYTES_WAITING: Final = 128 << 20
"""Memory of agents' messages that were not looked at yet, estimated; those beyond are dropped, and counted."""
LEAST_RECORDS: Final = 100
"""With fewer there is nothing to learn."""
MOST_COMPUTING_S: Final = 300.0
MOST_ENDING_S: Final = 3.0
"""For messages that wait when the learner is to end; what is left then is lost."""
MOST_HISTORY: Final = 100
"""Computations that are kept to be shown."""
_LOOK_S: Final = 0.2
_MOST_A_TURN: Final = 512
"""Messages that are taken in before anything else is seen to: a second, with the rests, of 512 flows each."""
_REST: Final = 3.0
"""Times what a message took: a quarter of the time goes into taking in."""


@dataclass(frozen=True, slots=True)
class TypesLearnt:
    """Types were computed from *flows* records in *seconds*; ``sent``: they differ from before, and
    agents have them."""

    flows: int
    features: tuple[str, ...]
    types: int
    unknown_flows: int
    seconds: float
    sent: bool


@dataclass(frozen=True, slots=True)
class TypesFailed:
    """Types could not be computed; the old ones stay."""

    reason: str


@dataclass(frozen=True, slots=True)
class Computation:
    """One of the last ones: when it ended (Unix seconds), how long it took, and of how many records.

    outcome: "sent to agents", "as before", "sent again" (what is known, under a new policy), or why there is none.
    features and types: what it found, () and 0 if nothing. slowdown_ratio: mean slowdown of flows over that
    under the default thresholds, by the model.
    """

    at: float
    seconds: float
    records: int
    outcome: str
    features: tuple[str, ...] = ()
    types: int = 0
    unknown_flows: int = 0
    slowdown_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class LearnerState:
    """As of now. refused: records that could not be true, by host and reason. types: those that agents have.

    types_version: of the policy under which agents have them; history: computations, the newest last, at most
    `MOST_HISTORY`.
    """

    learning: bool
    interval_s: float | None
    records: int
    hosts: int
    refused: dict[str, dict[str, int]]
    displaced: int
    dropped_messages: int
    last_at: float | None
    last_s: float | None
    last_outcome: str
    types_version: int | None
    history: tuple[Computation, ...]
    types: LearntTypes | None


class TypeLearner:
    """publish: sends agents types (any thread); note: takes `TypesLearnt` and `TypesFailed`; store: None keeps
    nothing."""

    def __init__(
        self,
        publish: Callable[[control.FlowTypes], None],
        note: Callable[[object], None],
        store: RecordStore | None,
    ) -> None:
        self._publish, self._note = publish, note
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, Mapping[str, str], control.FinishedFlows]] = deque()
        self._thread: ControlThread | None = None
        self._stopping = False
        # under the lock
        self._priority: Priority | None = None
        self._version = 0
        self._due = 0.0
        self._waiting_bytes = 0
        self._dropped = 0
        self._since = 0.0
        # of the thread
        self._records = StoredRecords(store)
        self._published: LearntTypes | None = None
        self._published_version = 0
        self._history: deque[Computation] = deque(maxlen=MOST_HISTORY)
        self._job = Job()
        self._errors = RareLog(_LOG, logging.ERROR)

    def start(self) -> None:
        """Begin; what the store has comes back."""
        self._thread = ControlThread(self._run, "capstan-tpfs")
        self._thread.start()

    def stop(self) -> None:
        """End, with all records in the store. Harmless when not started."""
        if self._thread is None:
            return
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()
        self._thread = None

    def set_scheme(self, scheme: Scheme, version: int, forget: bool = False) -> None:
        """Learn as *scheme* says, for policy *version*, at once and then at every interval; or not at all.

        forget: only from flows that end from now on.
        """
        with self._changed:
            if forget:
                self._since = self._records.now()
            predicts = scheme.priority is not None and scheme.priority.prediction is not None
            self._priority = scheme.priority if predicts else None
            self._version = version
            self._due = time.monotonic()
            self._changed.notify()

    def receive(self, host: str, owners: Mapping[str, str], report: control.FinishedFlows) -> None:
        """Queue the records of *host*; owners: the host of each overlay address. Returns at once."""
        size = memory_of(report)
        with self._changed:
            if self._waiting_bytes + size > MOST_BYTES_WAITING:
                self._dropped += 1
                return
            self._waiting_bytes += size
            self._waiting.append((host, owners, report))

    def state(self) -> LearnerState:
        """Return what is known; from any thread."""
        with self._changed:
            prediction = None if self._priority is None else self._priority.prediction
            dropped = self._dropped
        history = tuple(self._history.copy())
        last = history[-1] if history else None
        return LearnerState(
            learning=prediction is not None,
            interval_s=None if prediction is None else prediction.interval_s,
            records=len(self._records.window),
            hosts=len(self._records.window.by_host()),
            refused={host: dict(reasons) for host, reasons in list(self._records.refused.items())},
            displaced=self._records.window.displaced,
            dropped_messages=dropped,
            last_at=None if last is None else last.at,
            last_s=None if last is None else last.seconds,
            last_outcome="" if last is None else last.outcome,
            types_version=None if self._published is None else self._published_version,
            history=history,
            types=self._published,
        )

    # in the thread

    def _run(self) -> None:
        try:
            self._restore()
            while not self._stopping:
                self._guarded(self._turn)
                with self._changed:
                    if not self._stopping:
                        self._changed.wait(_LOOK_S)
            end = time.monotonic() + MOST_ENDING_S
            while self._waiting and time.monotonic() < end:
                self._guarded(self._take_in)
            self._guarded(lambda: self._records.keep(always=True))
        finally:
            self._job.close()

    def _turn(self) -> None:
        self._take_in()
        self._apply_policy()
        due = self._due_now()
        if due is not None:
            self._learn(*due)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do *work*; an error costs what it was about, and no later turn."""
        try:
            work()
        except Exception:
            self._errors.say(f"a turn of learning flow types has failed: {traceback.format_exc(limit=-3)}")

    def _restore(self) -> None:
        with self._changed:
            priority = self._priority
        if priority is not None and priority.prediction is not None:
            self._records.bound(priority.prediction)  # before anything is too old, in the store, too
        try:
            self._records.restore()
        except Exception as error:  # what ends from now on can be learnt from
            _LOG.exception("records of earlier flows cannot be read")
            self._note(TypesFailed(f"records of earlier flows cannot be read: {error}"))

    def _due_now(self) -> tuple[Priority, int] | None:
        with self._changed:
            if self._priority is None or time.monotonic() < self._due or self._since != self._records.since:
                return None
            assert self._priority.prediction is not None
            self._due = time.monotonic() + self._priority.prediction.interval_s
            return self._priority, self._version

    def _apply_policy(self) -> None:
        """Apply a new policy at once, also during a computation: forget records, or publish types again."""
        with self._changed:
            since, priority, version = self._since, self._priority, self._version
        if since != self._records.since:
            self._published = None
            self._records.forget(since)
        if priority is not None:
            self._publish_again(priority, version)

    def _take_in(self) -> None:
        """Take in what waits, and rest three times as long: other threads need the interpreter, too."""
        for _ in range(_MOST_A_TURN):
            if not self._waiting:
                break
            began = time.monotonic()
            with self._changed:
                host, owners, report = self._waiting.popleft()
                self._waiting_bytes -= memory_of(report)
            self._records.take(host, owners, report)
            if not self._stopping:
                time.sleep(_REST * (time.monotonic() - began))
        self._records.keep()

    def _learn(self, priority: Priority, version: int) -> None:
        """Compute types and publish them; what fails, as with a full disk, is tried again at the next interval."""
        try:
            self._compute(priority, version)
        except Exception as error:
            _LOG.exception("types of flows cannot be computed; agents keep what they have")
            self._job.close()
            reason = f"{type(error).__name__}: {error}"
            self._record(0.0, len(self._records.window), f"failed: {reason}")
            self._note(TypesFailed(reason))

    def _compute(self, priority: Priority, version: int) -> None:
        assert priority.prediction is not None
        self._records.bound(priority.prediction)
        window = self._records.window
        window.expire(self._records.now())
        began = time.monotonic()
        if len(window) < LEAST_RECORDS:
            self._job.prepare()
            self._record(0.0, len(window), f"{len(window)} records are too few to learn from")
            return
        with tempfile.NamedTemporaryFile(prefix="capstan-records-") as file:
            for chunk in window.chunks():
                chunk.tofile(file)
            file.flush()
            types = self._wait_for(
                self._job.ask(
                    TypesRequest(
                        Path(file.name),
                        tuple(self._records.addresses.texts),
                        priority.scaled(),
                        priority.prediction.load,
                        priority.prediction.delta_bytes,
                        priority.prediction.printed,
                    )
                )
            )
        seconds = time.monotonic() - began
        if isinstance(types, LearntTypes):
            changed = self._publish_new(types, version)
            self._record(seconds, types.flows, "sent to agents" if changed else "as before", types)
            self._note(
                TypesLearnt(
                    types.flows, types.features, len(types.types), types.unknown_flows, seconds, changed
                )
            )
        elif types is not None:
            self._record(seconds, len(window), f"failed: {types}")
            self._note(TypesFailed(str(types)))

    def _record(self, seconds: float, records: int, outcome: str, types: LearntTypes | None = None) -> None:
        computation = Computation(time.time(), seconds, records, outcome)
        if types is not None:
            computation = replace(
                computation,
                features=types.features,
                types=len(types.types),
                unknown_flows=types.unknown_flows,
                slowdown_ratio=types.slowdown_ratio,
            )
        self._history.append(computation)

    def _wait_for(self, future: Future[object]) -> object:
        """Return what came of it: `LearntTypes`, or what went wrong as text; None if we are to end."""
        deadline = time.monotonic() + MOST_COMPUTING_S
        while not future.done():
            if self._stopping:
                return None
            if time.monotonic() > deadline:
                self._job.close()
                return f"not done after {MOST_COMPUTING_S:.0f} s"
            self._take_in()
            self._apply_policy()
            with self._changed:
                self._changed.wait(_LOOK_S / 10)
        try:
            return future.result() or "no records"
        except Exception as error:
            self._job.close()
            return repr(error)

    def _publish_again(self, priority: Priority, version: int) -> None:
        """Publish the old types under a new policy with the same default thresholds."""
        types = self._published
        if (
            types is None
            or version == self._published_version
            or types.default_thresholds_bytes != priority.scaled()
        ):
            return
        with self._changed:
            if version != self._version:
                return
        self._published_version = version
        self._publish(message_of(types, version))
        self._record(0.0, types.flows, "sent again", types)
        self._note(TypesLearnt(types.flows, types.features, len(types.types), types.unknown_flows, 0.0, True))

    def _publish_new(self, types: LearntTypes, version: int) -> bool:
        """Publish *types* if they are new to agents. Return True if they were."""
        if version == self._published_version and not differ(self._published, types):
            return False
        with self._changed:
            if version != self._version:
                return False  # the scheme has changed meanwhile: it is our turn again at once
        self._publish(message_of(types, version))
        self._published, self._published_version = types, version
        return True


def message_of(learnt: LearntTypes, version: int) -> control.FlowTypes:
    """Return the message with types for agents under policy *version*."""
    types = tuple(TypePriority(flow_type.values, flow_type.thresholds_bytes) for flow_type in learnt.types)
    return control.FlowTypes(version, learnt.features, types)
