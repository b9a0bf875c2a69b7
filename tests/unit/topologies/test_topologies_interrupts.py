"""Signals that come while a lab is taken down."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from topologies.interrupts import without_interrupts

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_handler_of_the_process_gets_at_the_end_what_came_meanwhile(number: signal.Signals) -> None:
    got: list[tuple[int, bool]] = []
    cleaned = False

    def end(came: int, frame: FrameType | None) -> None:
        got.append((came, cleaned))

    signal.signal(number, end)
    with without_interrupts():
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert got == []
        cleaned = True
    assert got == [(number, True)]
    assert signal.getsignal(number) is end


def test_what_the_handler_raises_comes_after_the_clean_up() -> None:
    def end(came: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + came)

    cleaned = []

    def clean_up() -> None:
        with without_interrupts():
            signal.raise_signal(signal.SIGTERM)
            cleaned.append("all")

    signal.signal(signal.SIGTERM, end)
    with pytest.raises(SystemExit):
        clean_up()
    assert cleaned == ["all"]


def test_a_second_ctrl_c_is_ignored() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with without_interrupts():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
