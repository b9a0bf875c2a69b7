"""Numbers of a peer's datagrams: each is accepted once, and what never comes is given up once."""

from __future__ import annotations

from capstan_native import Arrivals
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.integers(0, 60), max_size=120), st.sampled_from([0, 5000, 2**32 - 30]))
def test_every_number_once(numbers: list[int], base: int) -> None:
    arrivals = Arrivals()
    accepted = [one for one in numbers if arrivals.accept((base + one) % 2**32, 0.0)]
    assert len(accepted) == len(set(accepted)), "a replay passed"
    assert set(accepted) == set(numbers) or base == 2**32 - 30, "a new number was refused"
    assert arrivals.received == len(accepted)
    assert arrivals.replayed == len(numbers) - len(accepted)


@given(st.sets(st.integers(1, 99)), st.booleans())
def test_what_is_missing_is_given_up_once(missing: set[int], late: bool) -> None:
    arrivals = Arrivals()
    for number in range(101):
        if number not in missing:
            assert arrivals.accept(number, number / 100)
    assert arrivals.give_up(-1.0) == []
    ranges = arrivals.give_up(2.0)
    assert [number for first, count in ranges for number in range(first, first + count)] == sorted(missing)
    assert arrivals.give_up(3.0) == []
    assert arrivals.oldest_missing() is None
    if late:
        assert all(arrivals.accept(number, 4.0) for number in missing)
        assert not any(arrivals.accept(number, 4.0) for number in missing)
        assert arrivals.late == len(missing)


def test_old_numbers_are_replays_and_memory_is_bounded() -> None:
    arrivals = Arrivals()
    assert arrivals.accept(0, 0.0)
    assert arrivals.accept(10, 0.0)
    assert arrivals.accept(2 * Arrivals.WINDOW, 1.0)
    assert not arrivals.accept(10, 1.0)
    lost = sum(count for _, count in arrivals.give_up(2.0))
    assert lost <= Arrivals.WINDOW + 16
