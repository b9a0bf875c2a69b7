"""When parts are started again: by their own deaths only, later each time, and never for ever."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from experiments.run.supervision import (
    MOST_DEATHS,
    WITHIN_S,
    GiveUp,
    Restart,
    StartAgain,
    Supervision,
    how_ended,
)

LONGEST_WAIT_S = 1.0
DEATHS = st.lists(st.tuples(st.floats(0.0, 40.0), st.sampled_from(["a", "b", "c"])), max_size=60)


def moments(gaps: list[tuple[float, str]]) -> list[tuple[float, str]]:
    now, found = 1000.0, []
    for gap, part in gaps:
        now += gap
        found.append((now, part))
    return found


@given(DEATHS)
def test_a_part_is_given_up_at_its_fifth_death_in_a_minute_and_not_before(
    gaps: list[tuple[float, str]],
) -> None:
    supervision = Supervision()
    seen: list[tuple[float, str]] = []
    for now, part in moments(gaps):
        seen.append((now, part))
        recent = sum(one == part and at > now - WITHIN_S for at, one in seen)
        decision = supervision.ended(part, now)
        if recent >= MOST_DEATHS:
            assert isinstance(decision, GiveUp)
            assert decision.deaths == recent
            assert 0 <= decision.within_s < WITHIN_S
        else:
            assert isinstance(decision, StartAgain)
            assert now <= decision.at <= now + LONGEST_WAIT_S


@given(st.lists(st.floats(0.0, WITHIN_S / 5), min_size=MOST_DEATHS, max_size=MOST_DEATHS))
def test_each_start_waits_longer_than_the_one_before(gaps: list[float]) -> None:
    supervision, now, waits = Supervision(), 0.0, []
    for gap in gaps[:-1]:
        now += gap
        decision = supervision.ended("agent h1", now)
        assert isinstance(decision, StartAgain)
        waits.append(decision.at - now)
    assert waits[0] == 0.0, "a part that was killed once comes back at once"
    assert all(after > before for before, after in pairwise(waits))
    assert isinstance(supervision.ended("agent h1", now + gaps[-1]), GiveUp)


@given(DEATHS)
def test_other_parts_change_nothing(gaps: list[tuple[float, str]]) -> None:
    together, alone = Supervision(), Supervision()
    for now, part in moments(gaps):
        decision = together.ended(part, now)
        if part == "a":
            assert decision == alone.ended(part, now)


def test_words() -> None:
    assert how_ended(-9) == "signal 9"
    assert how_ended(1) == "exit code 1"
    assert Restart("agent h3", how_ended(-9), 5.0, 0.44).words == (
        "agent h3 ended (signal 9) and was started again after 0.4 s"
    )
