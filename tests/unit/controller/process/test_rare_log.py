"""A line that a peer can cause comes seldom, and says how many like it were left out."""

from __future__ import annotations

import logging

import pytest

from controller.process.rare_log import SAY_EVERY_S, RareLog


def test_lines_are_few_and_say_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    log = RareLog(logging.getLogger("capstan.test"))
    for number in range(1000):
        log.say(f"refused: {number}", now=number * SAY_EVERY_S / 500)
    assert [record.getMessage() for record in caplog.records] == [
        "refused: 0",
        "refused: 500 (499 more such lines were left out)",
    ]
