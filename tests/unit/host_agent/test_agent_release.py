"""In-order release: nothing twice, nothing lost, and nothing before its turn unless its time is over."""

from __future__ import annotations

from capstan_native import Release
from hypothesis import given
from hypothesis import strategies as st

TIMEOUT = 0.02


def name(position: int) -> bytes:
    return position.to_bytes(8, "big")


@given(st.permutations(range(12)), st.lists(st.integers(0, 11), max_size=6), st.sampled_from([0, 2**32 - 5]))
def test_with_time_enough_all_come_once_and_in_order(order: list[int], again: list[int], first: int) -> None:
    release = Release(first)
    out = []
    for position in order + again:
        out += release.arrive((first + position) % 2**32, name(position), TIMEOUT, 0.0)
    assert out == [name(position) for position in range(12)]
    assert release.duplicates == len(again)
    assert release.deadline is None


@given(
    st.lists(st.tuples(st.integers(0, 30), st.floats(0, 0.01)), max_size=60),
    st.sampled_from([0.0, TIMEOUT]),
)
def test_nothing_twice_and_nothing_held_too_long(arrivals: list[tuple[int, float]], timeout: float) -> None:
    release = Release(0)
    now = 0.0
    came: dict[bytes, float] = {}
    out: list[bytes] = []

    def released(packets: list[bytes], at: float) -> None:
        for packet in packets:
            assert at - came[packet] <= timeout + 1e-9
            out.append(packet)

    for position, pause in arrivals:
        now += pause
        while (due := release.deadline) is not None and due <= now:
            released(release.expire(due), due)
        came.setdefault(name(position), now)
        released(release.arrive(position, name(position), timeout, now), now)
        if timeout == 0.0:
            assert release.deadline is None
    while (due := release.deadline) is not None:
        released(release.expire(due), due)
    assert len(set(out)) == len(out), "never twice"
    assert set(out) == set(came), "never lost"


def test_a_gap_is_given_up_and_its_packet_still_comes() -> None:
    release = Release(0)
    assert release.arrive(0, b"0", TIMEOUT, 0.0) == [b"0"]
    assert release.arrive(2, b"2", TIMEOUT, 0.001) == []
    assert release.arrive(3, b"3", TIMEOUT, 0.002) == []
    assert release.deadline == 0.001 + TIMEOUT
    assert release.expire(0.02) == []
    assert release.expire(0.021) == [b"2", b"3"]
    assert (release.timeouts, release.abandoned, release.held_total) == (1, 1, 2)
    assert release.arrive(1, b"1", TIMEOUT, 0.03) == [b"1"]
    assert release.arrive(1, b"1", TIMEOUT, 0.03) == []
    assert (release.abandoned, release.duplicates) == (0, 1)


def test_a_second_gap_has_its_own_time() -> None:
    release = Release(0)
    release.arrive(1, b"1", TIMEOUT, 0.000)
    release.arrive(3, b"3", TIMEOUT, 0.015)
    assert release.expire(0.020) == [b"1"]
    assert release.deadline == 0.015 + TIMEOUT
    assert release.arrive(2, b"2", TIMEOUT, 0.021) == [b"2", b"3"]
    assert release.deadline is None


def test_memory_is_bounded() -> None:
    release = Release(0)
    out = []
    for position in range(1, 20_000):
        out += release.arrive(position, b"x", 10.0, 0.0)
    assert len(out) >= 20_000 - 8192 - 2
    out = release.arrive(2**31 - 1, b"far", 0.5, 0.0)
    assert release.expire(11.0)[-1:] == [b"far"] or out[-1:] == [b"far"]
