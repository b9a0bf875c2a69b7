"""A line that a peer can cause comes seldom, and says how many like it were left out."""

from __future__ import annotations

import logging

import pytest

from controller.rare_log import RareLog


def test_lines_are_few_and_say_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    log = RareLog(logging.getLogger("capstan.test"), burst=2, every_s=10.0)
    for number in range(1000):
        log.say(f"refused: {number}", now=number * 0.02)
    assert [record.getMessage() for record in caplog.records] == [
        "refused: 0",
        "refused: 1",
        "refused: 500 (498 more such lines were left out)",
    ]
