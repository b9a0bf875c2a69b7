"""A sink that cannot accept rests, and goes on: it takes no processor from what it measures."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from workloads import sink as module
from workloads.sink import ACCEPT_AGAIN_S, Sink


class Listener:
    """A listener that is always ready; its accepts fail as *errors* say, then there is no connection."""

    def __init__(self, *errors: int) -> None:
        self._errors = list(errors)
        self.asked = 0

    def getsockname(self) -> tuple[str, int]:
        return "::", 5001

    def accept(self) -> tuple[socket.socket, str]:
        self.asked += 1
        if self._errors:
            number = self._errors.pop(0)
            raise OSError(number, "no connection")
        raise BlockingIOError

    def close(self) -> None:
        pass


@dataclass
class SteppedLoop:
    """As much of a loop as a sink needs, in a time of its own: `step` calls whatever is ready once."""

    now: float = 100.0
    watched: dict[object, Callable[[int], None]] = field(default_factory=dict)
    timers: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def watch(self, source: object, _events: int, call: Callable[[int], None]) -> None:
        self.watched[source] = call

    def forget(self, source: object) -> None:
        self.watched.pop(source, None)

    def at(self, when: float, call: Callable[[], None]) -> None:
        self.timers.append((when, call))

    def step(self, seconds: float) -> None:
        self.now += seconds
        for when, call in [timer for timer in self.timers if timer[0] <= self.now]:
            self.timers.remove((when, call))
            call()
        for ready in list(self.watched.values()):
            ready(1)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> SteppedLoop:
    loop = SteppedLoop()
    monkeypatch.setattr(module, "monotonic", lambda: loop.now)
    return loop


def sink_of(loop: SteppedLoop, listener: Listener, monkeypatch: pytest.MonkeyPatch) -> Sink:
    monkeypatch.setattr(module, "_listen", lambda port: listener)
    return Sink(loop, 0)  # type: ignore[arg-type]


def test_an_accept_without_a_descriptor_is_not_tried_again_at_once(
    loop: SteppedLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener(errno.EMFILE, errno.EMFILE)
    sink_of(loop, listener, monkeypatch)
    for attempts in (1, 2):
        for _ in range(9):
            loop.step(ACCEPT_AGAIN_S / 10)
            assert listener.asked == attempts
        loop.step(ACCEPT_AGAIN_S / 2)
    assert listener.asked == 3
    loop.step(0)
    assert listener.asked == 4, "it is watched again"


def test_a_peer_that_gave_up_stops_no_other(loop: SteppedLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener(errno.ECONNABORTED, errno.ECONNABORTED)
    sink_of(loop, listener, monkeypatch)
    loop.step(0)
    assert listener.asked == 3


def test_a_sink_that_rests_listens_again_in_the_next_run(
    loop: SteppedLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a run drops all timers."""
    listener = Listener(errno.ENFILE)
    sink = sink_of(loop, listener, monkeypatch)
    loop.step(0)
    loop.timers.clear()
    sink.reset()
    loop.step(0)
    assert listener.asked == 2
