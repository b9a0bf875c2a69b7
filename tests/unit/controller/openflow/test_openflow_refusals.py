"""Switches that refused something: made to begin anew, but not again and again, and named until they have."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

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


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("refuses", "refuses", "returns", "ticks")),
            st.integers(1, 4),
            st.floats(0.0, 2 * HEAL_EVERY_S),
        ),
        max_size=40,
    )
)
def test_what_is_pruned_changes_nothing_that_is_said(happens: list[tuple[str, int, float]]) -> None:
    """Against a list of all that ever was: who is to begin anew, and what is open, as connections come and go."""
    refusals, now, connected = Refusals(), 0.0, {1, 2, 3, 4}
    healed: dict[int, float] = {}
    unlike: dict[int, float] = {}
    for what, dpid, pause in happens:
        now += pause
        for due in refusals.due(now):
            connected.discard(due)
            healed[due] = now
        if what == "refuses" and dpid in connected:
            anew = refusals.update_refused(dpid, (error(dpid, now),), now)
            assert anew == (now - healed.get(dpid, -HEAL_EVERY_S) >= HEAL_EVERY_S)
            unlike[dpid] = now
            if anew:
                connected.discard(dpid)
                healed[dpid] = now
        elif what == "returns" and dpid not in connected:
            connected.add(dpid)
            unlike.pop(dpid, None)
            refusals.began_anew(dpid)
        still = {who: at for who, at in unlike.items() if who in connected or now - at < HEAL_EVERY_S}
        assert sorted(found.dpid for found in refusals.open(connected, now)) == sorted(still)


def test_switches_that_do_not_return_leave_nothing() -> None:
    refusals = Refusals()
    sizes = []
    for number in range(4000):
        refusals.update_refused(number, (error(number, 0.1 * number),), 0.1 * number)
        sizes.append(sum(sys.getsizeof(kept) for kept in vars(refusals).values()))
    assert max(sizes[1000:]) <= max(sizes[:1000])
