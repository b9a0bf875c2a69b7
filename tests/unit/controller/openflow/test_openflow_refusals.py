"""Switches that refused something: made to begin anew, but not again and again, and told of until they have."""

from __future__ import annotations

from controller.openflow.errors import SwitchError
from controller.openflow.refusals import HEAL_EVERY_S, KEPT_ERRORS, Refusals


def error(dpid: int, at: float) -> SwitchError:
    return SwitchError(dpid, "flow", "OFPET_BAD_MATCH", "OFPBMC_BAD_PREREQ", at=at)


def test_a_switch_begins_anew_at_most_once_in_a_while() -> None:
    refusals = Refusals()
    assert refusals.update_refused(1, (error(1, 5.0),), 5.0)
    assert not refusals.update_refused(1, (error(1, 6.0),), 6.0)
    assert refusals.update_refused(2, (error(2, 6.0),), 6.0)
    assert refusals.update_refused(1, (error(1, 5.0 + HEAL_EVERY_S),), 5.0 + HEAL_EVERY_S)


def test_a_refusal_is_open_until_the_switch_begins_anew_or_is_gone_for_long() -> None:
    refusals = Refusals()
    refusals.update_refused(1, (error(1, 5.0),), 5.0)
    assert refusals.open({1}, 1e6) == [error(1, 5.0)]
    assert refusals.open((), 5.0 + HEAL_EVERY_S - 0.1) == [error(1, 5.0)]
    assert refusals.open((), 5.0 + HEAL_EVERY_S) == []
    refusals.began_anew(1)
    assert refusals.open({1}, 6.0) == []
    refusals.began_anew(1)


def test_the_latest_errors_are_kept() -> None:
    refusals = Refusals()
    for number in range(KEPT_ERRORS + 5):
        refusals.note(error(number, 0.0))
    assert [one.dpid for one in refusals.latest()] == list(range(5, KEPT_ERRORS + 5))


def test_a_switch_that_refuses_again_too_soon_begins_anew_when_it_may() -> None:
    """Found by seeds 70 and 475 of the world: it stayed unlike what is wanted until another update was refused."""
    refusals = Refusals()
    assert refusals.update_refused(1, (error(1, 100.0),), 100.0)
    refusals.began_anew(1)
    assert refusals.deadline() is None
    assert not refusals.update_refused(1, (error(1, 100.0),), 110.0)
    assert refusals.deadline() == 100.0 + HEAL_EVERY_S
    assert refusals.due(100.0 + HEAL_EVERY_S - 0.1) == []
    assert refusals.due(100.0 + HEAL_EVERY_S) == [1]
    assert refusals.due(100.0 + HEAL_EVERY_S) == []
    refusals.began_anew(1)
    assert not refusals.update_refused(1, (error(1, 100.0),), 135.0)
    refusals.began_anew(1)  # by itself, before its time
    assert refusals.deadline() is None
