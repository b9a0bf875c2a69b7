"""A loop in a thread of its own: what runs first and last, work from other threads, and errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from capstan_client.errors import CapstanError
from loops.thread import LoopThread, daemon_thread
from tests.waiting import eventually


class ClosedError(CapstanError, RuntimeError):
    """The loop under test does not run."""


class Recorder:
    """What the loop did, in order; *fails*: what opening it raises."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.done: list[object] = []
        self._fails = fails

    async def open(self) -> None:
        self.done.append("open")
        if self._fails is not None:
            raise self._fails

    async def close(self) -> None:
        self.done.append("close")


def loop_of(recorder: Recorder, **options: object) -> LoopThread:
    return LoopThread(
        "loop under test", recorder.open, recorder.close, subject="the loop", error=ClosedError, **options
    )  # type: ignore[arg-type]


@contextmanager
def running(recorder: Recorder, **options: object) -> Iterator[LoopThread]:
    thread = loop_of(recorder, **options)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()


def test_work_of_other_threads_is_done_between_opening_and_closing() -> None:
    recorder = Recorder()

    async def named() -> str:
        recorder.done.append("run")
        return threading.current_thread().name

    with running(recorder) as thread:
        thread.post(recorder.done.append, "posted")
        assert thread.run(named()) == "loop under test"
    assert recorder.done == ["open", "posted", "run", "close"]


def test_what_does_not_run_takes_no_work() -> None:
    recorder = Recorder()
    thread = loop_of(recorder)
    thread.post(recorder.done.append, "before")
    with pytest.raises(ClosedError, match="the loop is not open"):
        thread.run(asyncio.sleep(0))
    thread.stop()
    thread.start()
    thread.stop()
    thread.post(recorder.done.append, "after")
    with pytest.raises(ClosedError):
        thread.run(asyncio.sleep(0))
    assert recorder.done == ["open", "close"]


def test_work_that_waits_while_the_loop_ends_is_refused_as_any_later_one() -> None:
    """A request that waited for agents when the controller ended was answered with 500, and logged as a defect."""
    thread, begun = loop_of(Recorder()), threading.Event()
    thread.start()

    async def wait() -> None:
        begun.set()
        await asyncio.sleep(3600)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(thread.run, wait())
        assert begun.wait(60)
        thread.stop()
        with pytest.raises(ClosedError, match="the loop is not open any more"):
            waiting.result(60)


@pytest.mark.parametrize(
    ("raised", "said"),
    [(OSError("port in use"), "the loop cannot be opened: port in use"), (ClosedError("full"), "full")],
)
def test_an_opening_that_fails_is_closed_and_raised(raised: Exception, said: str) -> None:
    recorder = Recorder(raised)
    with pytest.raises(ClosedError) as caught:
        loop_of(recorder).start()
    assert str(caught.value) == said
    assert recorder.done == ["open", "close"]


@pytest.mark.timeout(60)
def test_a_loop_that_cannot_be_made_is_raised_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_descriptors() -> asyncio.AbstractEventLoop:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(asyncio, "SelectorEventLoop", without_descriptors)
    recorder = Recorder()
    thread = loop_of(recorder)
    with pytest.raises(ClosedError, match=r"the loop cannot be opened: .*Too many open files"):
        thread.start()
    assert recorder.done == []
    thread.stop()
    monkeypatch.undo()
    thread.start()
    thread.stop()
    assert recorder.done == ["open", "close"]


@pytest.mark.parametrize("errors_end", [False, True])
def test_an_error_of_a_callback_ends_the_thread_where_that_is_asked_for(errors_end: bool) -> None:
    recorder = Recorder()
    deaths: list[BaseException] = []

    def make(work: Callable[[], object], name: str) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                deaths.append(error)

        return daemon_thread(run, name)

    def fail() -> None:
        raise KeyError("no such reader")

    with running(recorder, errors_end=errors_end, make_thread=make) as thread:
        thread.post(fail)
        if errors_end:
            eventually(lambda: deaths)
        else:
            thread.run(asyncio.sleep(0))
    assert [type(error) for error in deaths] == ([KeyError] if errors_end else [])
    assert recorder.done == ["open", "close"]
