"""What the mode benchmark makes of packets that passed a leaf, and the packets that it sends."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.mode import BenchmarkError, Passage, evaluate
from benchmarks.mode_traffic import class_of, frame
from protocol.underlay import BASE_PORT, TrafficClass

MS = 1_000_000
T_MS = 25.0


def stream(
    shorts: list[int], on_ms: float, off_ms: float, pauses: list[tuple[float, float]] = ()
) -> list[Passage]:
    """Return passages at a leaf with 4 uplinks that turns ON *on_ms* after each short packet, OFF *off_ms* after it."""
    passages = [Passage(at * MS, "in", False, TrafficClass.SHORT) for at in shorts]
    for index in range(0, (shorts[-1] + 100) * 2):
        at = index * 0.5
        if any(begin <= at < end for begin, end in pauses):
            continue
        since = min((at - short for short in shorts if at >= short), default=1e9)
        port = "up0" if on_ms <= since < off_ms else f"up{index % 4}"
        passages.append(Passage(int(at * MS), "in", False, TrafficClass.LONG))
        passages.append(Passage(int(at * MS) + 50_000, port, True, TrafficClass.LONG))
    return passages


def test_changes_are_found_to_within_a_packet_or_so() -> None:
    found = evaluate(stream([100, 300, 500], 4.0, 33.0), T_MS)
    cycles = found.cycles
    assert (len(cycles), found.tried, found.steady, found.bound) == (2, 2, 2, False)
    for cycle in cycles:
        assert 2.0 <= cycle.on_ms <= 4.0
        assert 33.0 <= cycle.off_ms <= 34.5


def test_a_leaf_that_never_changes_meets_no_goal() -> None:
    for cycle in evaluate(stream([100, 300, 500], 1e9, 1e9), T_MS).cycles:
        assert cycle.on_ms > 18.0
    for cycle in evaluate(stream([100, 300, 500], 2.0, 1e9), T_MS).cycles:
        assert cycle.off_ms == pytest.approx(200.0, abs=1.0)


def test_cycles_in_which_the_stream_paused_do_not_count() -> None:
    found = evaluate(stream([100, 300, 500, 700], 4.0, 33.0, [(310.0, 320.0)]), T_MS)
    assert (len(found.cycles), found.steady, found.bound) == (2, 2, False)
    assert found.steady_percent == pytest.approx(200 / 3)


@pytest.mark.slow
@given(
    on_ms=st.floats(1.0, 9.0),
    off_ms=st.floats(26.0, 60.0),
    pauses=st.lists(st.tuples(st.floats(0.0, 150.0), st.floats(4.0, 7.0)), min_size=3, max_size=3),
)
def test_where_most_cycles_paused_all_count_and_none_is_flattered(
    on_ms: float, off_ms: float, pauses: list[tuple[float, float]]
) -> None:
    shorts = [100, 300, 500, 700]
    gaps = [
        (short + after, short + after + long)
        for short, (after, long) in zip(shorts[:-1], pauses, strict=True)
    ]
    found = evaluate(stream(shorts, on_ms, off_ms, gaps), T_MS)
    assert found.tried == 3
    if found.bound:
        assert found.steady < 2
        assert len(found.cycles) == 3
        for cycle in found.cycles:
            assert cycle.on_ms >= on_ms - 0.5, "an upper bound, to within a datagram of the stream"
            assert cycle.off_ms >= min(off_ms, 200.0) - 0.5
    else:
        assert found.steady >= 2


def test_a_cycle_without_any_sign_of_the_leaf_being_on_does_not_count() -> None:
    found = evaluate(stream([100, 300, 500, 700], 4.0, 33.0, [(101.0, 290.0), (301.0, 480.0)]), T_MS)
    assert (found.tried, found.steady, found.bound, len(found.cycles)) == (3, 1, True, 1)
    with pytest.raises(BenchmarkError, match="in none of 3 cycles"):
        evaluate(stream([100, 300, 500, 700], 4.0, 33.0, [(90.0, 700.0)]), T_MS)
    with pytest.raises(BenchmarkError):
        evaluate([], T_MS)


def test_frames_are_agents_datagrams() -> None:
    data = frame("10.0.1.1", "10.0.2.1", TrafficClass.SHORT, 40000)
    assert class_of(data) is TrafficClass.SHORT
    assert struct.unpack_from("!H", data, 34)[0] == 40000
    words = struct.unpack_from("!10H", data, 14)
    total = sum(words)
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    other = bytearray(data)
    struct.pack_into("!H", other, 36, BASE_PORT - 1)
    assert class_of(bytes(other)) is TrafficClass.NONE
    assert class_of(data[:30]) is TrafficClass.NONE
