"""The log of events: what is after a cursor, whatever has gone by and however much is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api.views import modes_view
from controller.capton.resent import CaptonSentAgain
from controller.live import event_log as events
from controller.live.event_log import MOST_TEXT, EventLog, ExperimentEnded, Logged
from controller.plane.effects import ModeChanged
from controller.plane.snapshot import FabricSnapshot
from tests.waiting import eventually

NOTHING: Final = FabricSnapshot((), (), (), (), "", settled=False)


@given(
    added=st.integers(0, 60),
    kept=st.integers(1, 40),
    few=st.integers(0, 20),
    cursor=st.integers(0, 80),
    limit=st.none() | st.integers(0, 50),
)
def test_events_after_a_cursor_are_those_and_no_others(
    added: int, kept: int, few: int, cursor: int, limit: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "MOST_EVENTS", kept)
        patch.setattr(events, "FEW", few)
        log = EventLog()
        for number in range(1, added + 1):
            log.add(number)
        wanted = [number for number in range(max(1, added - kept + 1), added + 1) if number > cursor]
        found = log.since(cursor, limit)
    assert [one.data for one in found] == (wanted if limit is None else wanted[:limit])
    assert [one.cursor for one in found] == [one.data for one in found]


class _AddedMeanwhile(EventLog):
    """A log to which an event is added right after its events were read."""

    def since(self, cursor: int, limit: int | None = None) -> list[Logged]:
        events = super().since(cursor, limit)
        self.add("meanwhile")
        return events


@pytest.mark.parametrize("wanted", [None, lambda event: event == "meanwhile"])
def test_what_is_added_while_a_page_is_read_is_in_the_next(wanted: Callable[[Any], bool] | None) -> None:
    log = _AddedMeanwhile()
    log.add("before")
    _, cursor = log.page(0, 10, wanted)
    following, _ = log.page(cursor, 10, wanted)
    assert [one.data for one in following] == ["meanwhile"]
    assert modes_view(NOTHING, log, 0)["cursor"] < log.cursor


def test_changes_of_modes_have_the_name_of_a_leaf_that_is_gone() -> None:
    log = EventLog()
    log.add(ModeChanged(time.monotonic(), 10, "on", "first-packet"))
    gone = replace(NOTHING, forgotten=((10, "l10"),))
    assert [event["leaf"] for event in modes_view(gone, log, 0)["events"]] == ["l10"]
    assert [event["leaf"] for event in modes_view(NOTHING, log, 0)["events"]] == ["0xa"]


def test_pages_skip_nothing_that_is_wanted_whatever_the_limit() -> None:
    log = EventLog()
    for number in range(20):
        log.add(number)
    found, cursor = [], 0
    for _ in range(4):
        page, cursor = log.page(cursor, 2, lambda number: number % 3 == 0)
        found += [one.data for one in page]
    assert found == [0, 3, 6, 9, 12, 15, 18]
    assert cursor == log.cursor


def test_times_follow_a_clock_that_is_set_and_do_not_waver() -> None:
    ahead = [0.0]
    log = EventLog(lambda: time.time() + ahead[0])
    for jump in (0.0, 3600.0, -86_400.0):
        ahead[0] = jump

        def follows(jump: float = jump) -> bool:
            log.add(ModeChanged(time.monotonic(), 1, "on", "first-packet"))
            return abs(log.since(0)[-1].at - time.time() - jump) < 0.5

        eventually(follows, "its events are of the clock that was set")
        moment = time.monotonic()
        ahead[0] = jump + 0.02  # what reading two clocks one after the other may differ by
        wall = log.wall(moment)
        log.add(ModeChanged(moment, 1, "on", "first-packet"))
        assert log.since(0)[-1].at == log.wall(moment) == wall


def test_a_text_of_a_client_takes_no_more_of_the_memory_than_others() -> None:
    log = EventLog()
    log.add(ExperimentEnded(1, "mine", "failed", "x" * (1 << 20)))
    [kept] = log.since(0)
    assert kept.data == ExperimentEnded(1, "mine", "failed", "x" * MOST_TEXT + "...")


@pytest.mark.parametrize("count", [9 * 10**4300, float("inf"), float("nan")], ids=["long", "inf", "nan"])
def test_an_event_that_json_cannot_say_is_dropped(count: float, caplog: pytest.LogCaptureFixture) -> None:
    """Every later `GET /events` was answered with 500."""
    log = EventLog()
    log.add(CaptonSentAgain(1.0, "h1", count))  # type: ignore[arg-type]
    log.add(CaptonSentAgain(2.0, "h1", 5))
    assert [one.data.bytes for one in log.since(0)] == [5]
    assert "JSON has no form for its bytes" in caplog.text
