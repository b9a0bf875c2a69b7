"""A signal asks for the end at any instruction of what waits for it."""

from __future__ import annotations

import pytest

from tests.unit.signals_anywhere import interrupted_anywhere, waits_for_ever_at

PROGRAM = """
from loops.ending import Ending

def interrupted_at(number):
    ending = {kind}()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    came = signal_at(number, lambda: ending.wait(0.001))
    assert ending.wait(0.1) == ending.wait(0.1) == came, "what was asked for stays asked for"
    return came
"""


def test_a_signal_at_any_instruction_of_the_wait_ends_it() -> None:
    assert interrupted_anywhere(PROGRAM.format(kind="Ending"), 60.0) > 5


@pytest.mark.slow
def test_with_an_event_it_may_wait_for_itself() -> None:
    """The reason for `Ending`; should Python's own come to bear it, that can go."""
    assert waits_for_ever_at(PROGRAM.format(kind="threading.Event")) > 1
