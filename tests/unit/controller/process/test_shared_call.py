"""A call that is shared: made after each asked, as seldom as that allows."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.process.shared_call import SharedCall


class Thread:
    """Where calls are posted; `run` does those that are there."""

    def __init__(self) -> None:
        self.posted: list[Callable[[], None]] = []
        self.come = threading.Condition()

    def post(self, work: Callable[[], None]) -> None:
        with self.come:
            self.posted.append(work)
            self.come.notify_all()

    def run(self) -> None:
        with self.come:
            assert self.come.wait_for(lambda: bool(self.posted), 60)
            work = self.posted.pop(0)
        work()


def asked(call: SharedCall[int], pool: ThreadPoolExecutor, count: int) -> list[int]:
    """Return the answers that *count* threads get when they ask at once."""
    started = threading.Barrier(count + 1)

    def ask() -> int:
        started.wait()
        return call(5.0)

    futures = [pool.submit(ask) for _ in range(count)]
    started.wait()
    return [future.result() for future in futures]


@pytest.mark.slow
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_all_get_what_was_made_after_they_asked(groups: list[int]) -> None:
    made = itertools.count(1)
    there, ended = Thread(), threading.Event()
    call = SharedCall(there.post, lambda: next(made))

    def work() -> None:
        while not ended.is_set():
            with there.come:
                there.come.wait_for(lambda: bool(there.posted) or ended.is_set(), 60)
                todo, there.posted = there.posted, []
            for one in todo:
                one()

    thread = threading.Thread(target=work)
    thread.start()
    last = 0
    try:
        with ThreadPoolExecutor(8) as pool:
            for count in groups:
                answers = asked(call, pool, count)
                assert min(answers) > last, "no client gets what was made before it asked"
                last = max(answers)
        assert last <= sum(groups)
    finally:
        ended.set()
        with there.come:
            there.come.notify_all()
        thread.join()


def test_those_who_wait_share_one_and_an_error_reaches_them_all() -> None:
    made: list[int] = []

    def fail() -> int:
        made.append(1)
        raise KeyError("gone")

    there = Thread()
    call = SharedCall(there.post, fail)
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(call, 5.0) for _ in range(3)]
        while sum(future.running() for future in futures) < 3:
            continue
        # All three run; those that have not come to the call yet get a call of their own.
        while not all(future.done() for future in futures):
            if there.posted:
                there.run()
        for future in futures:
            with pytest.raises(KeyError, match="gone"):
                future.result()
    assert 1 <= len(made) <= 3


def test_a_call_that_is_never_begun_ends_in_time_and_the_next_is_posted_anew() -> None:
    there = Thread()
    call = SharedCall(there.post, lambda: 7)
    with pytest.raises(TimeoutError):
        call(0.01)
    assert len(there.posted) == 1
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call, 5.0)
        there.run()
        there.run()
        assert future.result() == 7
