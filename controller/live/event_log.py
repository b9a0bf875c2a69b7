"""What happened, in order, with a cursor: the API's memory of events. Bounded; old ones go."""

from __future__ import annotations

import dataclasses
import logging
import math
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from controller.subscribers import Subscribers

LOG: Final = logging.getLogger("capstan.live")
MOST_EVENTS: Final = 20_000
SET_S: Final = 0.05
"""Seconds by which the wall clock may differ from what it was; beyond, it has been set, or has drifted."""
MOST_TEXT: Final = 4096
"""Characters of a text of an event: errors and names come from clients, and all readers get them."""
MOST_BITS: Final = 1024
"""Of a whole number: beyond, it is no float, and from some 14 000 on Python writes none."""
FEW: Final = 500
"""Events that are sooner found one by one, from the nearer end, than by going through all before them."""


@dataclasses.dataclass(frozen=True, slots=True)
class ExperimentCreated:
    """An experiment is registered that is not of the queue."""

    experiment: int
    name: str
    state: str


@dataclasses.dataclass(frozen=True, slots=True)
class ExperimentSubmitted:
    """An experiment waits to be run; points: of a sweep, else 0."""

    experiment: int
    name: str
    state: str
    points: int


@dataclasses.dataclass(frozen=True, slots=True)
class ExperimentChanged:
    """An experiment that was submitted, or a point of a sweep, is in another state, and is not over."""

    experiment: int
    parent: int | None
    name: str
    state: str
    error: str


@dataclasses.dataclass(frozen=True, slots=True)
class ExperimentProgress:
    """Where an experiment is that was submitted: as `GET /experiments/ID/progress` answers it."""

    experiment: int
    progress: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class RunAdded:
    """A run of an experiment is finished, and kept. parent: the sweep that it is a point of."""

    experiment: int
    name: str
    state: str
    run: int
    scheme: str
    label: str
    repeat: int
    cpu_limited: bool
    parent: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ExperimentEnded:
    """An experiment is over. error: why, if it has failed; parent: the sweep that it is a point of."""

    experiment: int
    name: str
    state: str
    error: str = ""
    parent: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PartRestarted:
    """A part ("agent h3") ended, by its "signal 9" or with its "exit code 1", and was back after so many seconds."""

    part: str
    how: str
    after_s: float


def http_restarted(code: int, after_s: float) -> PartRestarted:
    """Return the event for the API's HTTP process. code: as `subprocess` has it."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return PartRestarted("the API's HTTP process", how, round(after_s, 3))


@dataclasses.dataclass(frozen=True, slots=True)
class Logged:
    """One event: ``at`` in Unix seconds; ``data`` is the event as it came."""

    cursor: int
    at: float
    data: Any


class EventLog:
    """Events from any thread; no thread waits long for it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Make an empty log. clock: Unix seconds; it may be set while the controller runs."""
        self.added: Final = Subscribers[[Logged]]()
        """Each event, in the thread that adds it and in order."""
        self._events: deque[Logged] = deque(maxlen=MOST_EVENTS)
        self._cursor = 0
        self._totals: Counter[type] = Counter()
        self._lock = threading.Lock()
        self._clock = clock
        self._began = clock()
        self._offset = self._began - time.monotonic()

    def add(self, event: Any) -> None:
        """Keep an event, its texts cut off at `MOST_TEXT`; its ``at``, if it has one, is on the monotonic clock.

        One with a number that JSON has no form for is logged and dropped: it would be in every later answer.
        """
        unsayable = _unsayable(event)
        if unsayable is not None:
            LOG.error("an event %s is dropped: JSON has no form for its %s", kind_of(event), unsayable)
            return
        event = _shortened(event)
        before, wall, after = time.monotonic(), self._clock(), time.monotonic()
        time_s = getattr(event, "at", before)
        offset = wall - before
        with self._lock:
            # A thread that had to wait between the two has read no offset.
            if abs(offset - self._offset) > SET_S and after - before < SET_S / 10:
                self._offset = offset
            time_s += self._offset
            self._cursor += 1
            logged = Logged(self._cursor, time_s, event)
            self._events.append(logged)
            self._totals[type(event)] += 1
            self.added.notify(logged)

    @property
    def cursor(self) -> int:
        """Return the cursor of the newest event."""
        return self._cursor

    def since(self, cursor: int, limit: int | None = None) -> list[Logged]:
        """Return the events after *cursor*, oldest first, at most *limit*."""
        with self._lock:  # who adds an event waits meanwhile: only what is wanted is looked at
            events = self._events
            start = max(0, cursor + 1 - events[0].cursor) if events else 0
            stop = len(events) if limit is None else min(len(events), start + limit)
            if stop - start > FEW:
                return list(islice(events, start, stop))
            return [events[index] for index in range(start, stop)]

    def page(
        self, cursor: int, limit: int | None = None, wanted: Callable[[Any], bool] | None = None
    ) -> tuple[list[Logged], int]:
        """Return events after *cursor*, oldest first, at most *limit*; and the cursor to go on with.

        wanted: which events count; others are skipped before the limit.
        """
        newest = self._cursor  # before events are read: one that is added meanwhile is in the next page
        if wanted is None:
            events = self.since(cursor, limit)
        else:
            events = list(islice((event for event in self.since(cursor) if wanted(event.data)), limit))
        last = events[-1].cursor if events else 0
        return events, last if events and len(events) == limit else max(newest, last)

    def totals(self) -> dict[str, int]:
        """Return how many there were of each kind, since the start."""
        with self._lock:
            totals = dict(self._totals)
        return {_name_of(kind): count for kind, count in totals.items()}

    def wall(self, monotonic: float) -> float:
        """Return Unix seconds of a time on the monotonic clock, by the wall clock as it was when the newest event
        came."""
        return monotonic + self._offset

    def began_at(self) -> float:
        """Return Unix seconds of the oldest moment from which every event is still here."""
        with self._lock:
            if self._events and self._events[0].cursor > 1:
                return self._events[0].at
        return self._began


def _unsayable(event: Any) -> str | None:
    """Return the field of an event whose number JSON cannot say; None: there is none."""
    for name in getattr(event, "__dataclass_fields__", ()):
        value = getattr(event, name)
        if isinstance(value, float) and not math.isfinite(value):
            return str(name)
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            return str(name)
    return None


def _shortened(event: Any) -> Any:
    """Return an event without the ends of texts that are too long."""
    texts = {
        name: f"{value[:MOST_TEXT]}..."
        for name in getattr(event, "__dataclass_fields__", ())
        if isinstance(value := getattr(event, name), str) and len(value) > MOST_TEXT
    }
    return dataclasses.replace(event, **texts) if texts else event


def kind_of(event: Any) -> str:
    """Return an event's name in the API: ``link-down`` of ``LinkDown``."""
    return _name_of(type(event))


def _name_of(kind: type) -> str:
    return _dashed(kind.__name__)


@lru_cache(maxsize=256)
def _dashed(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
