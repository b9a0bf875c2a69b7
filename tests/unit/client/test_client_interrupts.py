"""An exception of a signal's handler, at any instruction of a request's, leaves no lock taken."""

from __future__ import annotations

import pytest

from tests.unit.signals_anywhere import interrupted_anywhere, waits_for_ever_at

PROGRAM = """
from capstan_client.call_thread import CallThread

class Direct:
    def call(self, work):
        return work()

class End(BaseException):
    pass

def end(*_):
    raise End

class Lock:
    '''As that of a pool of connections.'''
    def __init__(self):
        self.lock = threading.Lock()
    def __enter__(self):
        self.lock.acquire()
        return self
    def __exit__(self, *_):
        self.lock.release()

def interrupted_at(number):
    lock, calls = Lock(), {kind}()
    def work():
        with lock:
            return number
    signal.signal(signal.SIGTERM, end)
    try:
        came = signal_at(number, lambda: calls.call(work))
    except End:
        came = True
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert calls.call(work) == number
    return came
"""


def test_a_call_that_is_interrupted_anywhere_is_followed_by_another() -> None:
    assert interrupted_anywhere(PROGRAM.format(kind="CallThread"), 60.0) > 20


@pytest.mark.slow
def test_without_a_thread_of_its_own_it_may_wait_for_ever() -> None:
    assert waits_for_ever_at(PROGRAM.format(kind="Direct")) > 1
