"""When the fabric is empty: decided from what agents received since they were asked before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.run.drain import DrainError, Stillness, wait_until_empty

Report = dict[str, list[dict[str, Any]]]


def report(**packets: int) -> Report:
    """Return what hosts received; they sent, too, which says nothing of packets under way."""
    return {
        host: [{"side": "receiver", "packets": count}, {"side": "sender", "packets": 7}]
        for host, count in packets.items()
    }


@given(arrivals=st.lists(st.booleans(), max_size=30))
def test_still_means_no_packet_for_the_whole_time(arrivals: list[bool]) -> None:
    stillness = Stillness(1.0, 0.0)
    last = 0.0
    for step, busy in enumerate(arrivals, 1):
        now = 0.25 * step
        last = now if busy else last
        assert stillness.note(report(h1=0, h2=int(busy)), now) == (now - last >= 1.0)


def test_it_waits_for_the_last_packet_and_returns_soon_after() -> None:
    reports: Iterator[Report] = iter([report(h1=9), report(h1=0, h2=3), *[report(h1=0)] * 100])
    checks: list[None] = []
    took = wait_until_empty(lambda: next(reports), 0.001, lambda: checks.append(None))
    assert took > 0.3
    assert next(reports) == report(h1=0), "soon: not when no report is left"
    assert len(checks) >= 3


def test_packets_without_an_end_are_an_error_that_names_the_host() -> None:
    with pytest.raises(
        DrainError, match=r"packets still arrive 1 s after the last run, most at h2 \(5 packets\)"
    ):
        wait_until_empty(lambda: report(h1=1, h2=5), 0.001, limit_s=0.5)
