"""Request collapsing: who asks for the same thing while it waits for a thread gets the same answer.

Answers are made in one process with the control plane, in turn; fifty pages that ask for the same would each wait for
fifty of them. An answer is shared only by requests that were there, whole, before it was begun: each gets what it would
have got alone, at a later time than it asked. Requests are the same if their first lines and all their headers are,
tokens and ``If-None-Match`` among them.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from waitress.parser import HTTPRequestParser
from waitress.task import ThreadedTaskDispatcher

LARGEST_ANSWER: Final = 4 << 20
"""Bytes; what is larger goes to its reader as it is made, and is not kept for others."""

AT_WORK: Final = 2
"""Threads that make answers for readers at a time. Each that computes lets all others wait for the interpreter, one
after the other, and the control plane is one of them; more threads make no answer earlier."""
TURN_PATIENCE_S: Final = 0.02
"""After which a thread goes on nevertheless: those before it wait for something, or make something large."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer as it goes over the wire, head and body; ``ends``: its connection ends with it."""

    parts: tuple[bytes, ...]
    ends: bool


class Asker(Protocol):
    """A connection with a whole request at the head of its queue."""

    def sameness(self) -> Hashable | None:
        """Equal for requests that get the same answer; None: for nobody else."""

    def answer(self) -> Answer | None:
        """Make the answer and send it; returns what was sent, or None if it is not for others."""

    def repeat(self, answer: Answer) -> None:
        """Send this answer."""

    def cancel(self) -> None:
        """Give up."""


def sameness(request: HTTPRequestParser) -> Hashable | None:
    """Of a request that is there as a whole; None where it is no GET, has a body, or is wrong."""
    if request.error or request.body_rcv is not None or request.command != "GET":
        return None
    return request.first_line, frozenset(request.headers.items())


class _Asked:
    """Connections that ask for the same, in the dispatcher's queue once."""

    def __init__(self, dispatcher: CollapsingDispatcher, same: Hashable | None, asker: Asker) -> None:
        self._dispatcher = dispatcher
        self.same = same
        self.askers = [asker]

    def service(self) -> None:
        with self._dispatcher.turn(self):
            self._serve()

    def _serve(self) -> None:
        self._dispatcher.begin(self)
        waiting = list(self.askers)
        try:
            answer = waiting.pop(0).answer()
            while waiting and answer is not None:
                waiting.pop(0).repeat(answer)
        finally:
            for asker in waiting:  # each for itself
                self._dispatcher.add_alone(asker)

    def cancel(self) -> None:
        for asker in self.askers:
            asker.cancel()


class CollapsingDispatcher(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Waitress's pool of threads, whose queue holds what is asked instead of who asks it."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._joinable: dict[Hashable, _Asked] = {}
        self._joining = threading.Lock()
        self._turns = threading.Semaphore(AT_WORK)
        self.collapsed = 0
        """Requests that got the answer of another one."""
        self.set_thread_count(threads)

    def add_task(self, task: Any) -> None:
        """Waitress has a whole request of a connection."""
        asker: Asker = task
        same = asker.sameness()
        with self._joining:
            if same is not None and same in self._joinable:
                self._joinable[same].askers.append(asker)
                self.collapsed += 1
                return
            asked = _Asked(self, same, asker)
            if same is not None:
                self._joinable[same] = asked
        self._enqueue(asked)

    def add_alone(self, asker: Asker) -> None:
        self._enqueue(_Asked(self, None, asker))

    @contextmanager
    def turn(self, asked: _Asked) -> Iterator[None]:
        """What a thread that makes an answer for readers waits for; nobody waits for others that wait themselves."""
        taken = asked.same is not None and self._turns.acquire(timeout=TURN_PATIENCE_S)
        try:
            yield
        finally:
            if taken:
                self._turns.release()

    def begin(self, asked: _Asked) -> None:
        """Who asks from now on gets a later answer."""
        if asked.same is not None:
            with self._joining:
                del self._joinable[asked.same]

    def _enqueue(self, asked: _Asked) -> None:
        with (
            self.lock
        ):  # as in the class above, which would write a line to the log for each that has to wait
            self.queue.append(asked)
            self.queue_cv.notify()
