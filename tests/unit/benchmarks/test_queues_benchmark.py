"""How the benchmark of priority queues judges what it has counted."""

from __future__ import annotations

import pytest

from benchmarks.queues import levels_in_order, sent_in


@pytest.mark.parametrize(
    ("sent", "levels"),
    [
        ([100, 100, 100, 60, 0, 0], 6),  # strict: who is served last gets what is left
        ([100, 100, 98, 62, 0, 0], 6),  # within 5 % of what was offered
        ([60, 60, 60, 60, 60, 60], 0),  # shared evenly: no priority at all
        ([100, 80, 100, 80, 0, 0], 1),
        ([0, 0, 60, 100, 100, 100], 0),  # the other way round
        ([100, 100, 0, 160, 0, 0], 2),
    ],
)
def test_levels_are_counted_down_to_the_first_that_got_too_little_or_too_much(
    sent: list[int], levels: int
) -> None:
    assert levels_in_order(sent, [100] * 6) == levels


def test_none_waits_where_all_is_sent() -> None:
    assert levels_in_order([10, 20, 5], [10, 20, 5]) == 3


def test_counts_are_differences_by_queue() -> None:
    looks = [{"counters": [{"sent_bytes": a}, {"sent_bytes": b}]} for a, b in ((5, 7), (9, 7))]
    assert sent_in(looks[0], looks[1]) == [4, 0]
