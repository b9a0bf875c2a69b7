"""What the coded path does for runs and units at once is what it does for packets one by one."""

from __future__ import annotations

import capstan_native
import numpy as np
import pytest
from capstan_native import Outstanding, SentLog, UnitDecoder
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.coding.unit import ClosedUnit, UnitEncoder
from host_agent.wire import parts
from protocol.datagram import REPAIR_HEAD_BYTES, CodeId, Kind, RepairHead, encode_fields
from protocol.policy import CodingPolicy

MODULUS = 2**32
HEADROOM, FRONT = 28, 60


def units(code: str, seed: int, sizes: list[tuple[int, int]]) -> list[tuple[ClosedUnit, list[bytes]]]:
    """Units made of rows (count, length of the last) and, where that is 0, of lone packets; with their packets."""
    rng = np.random.default_rng(seed)
    policy = CodingPolicy(code=code, redundancy="paper", max_k=20)  # type: ignore[arg-type]
    encoder = UnitEncoder(policy, rng)
    encoder.set_redundancy(0.2, 20)
    made: list[tuple[ClosedUnit, list[bytes]]] = []
    packets: list[bytes] = []
    position = MODULUS - 9
    for count, last in sizes:
        rows = rng.integers(0, 256, (min(count, encoder.room), FRONT + 90), np.uint8)
        if last:
            some = [row[FRONT:].tobytes() for row in rows]
            some[-1] = some[-1][:last]
            closed = encoder.take_rows(position, rows, 0, len(rows), FRONT, last, 0.0, False)
        else:
            some = [rng.bytes(count)]
            closed = encoder.take(position, some[0], 0.0, False)
        packets += some
        position = (position + len(some)) % MODULUS
        for unit in closed:
            made.append((unit, packets))
            packets = []
    return made + [(unit, packets) for unit in encoder.end()]


@settings(max_examples=60, deadline=None)
@given(
    code=st.sampled_from(["xor", "rlc", "ldpc", "mds"]),
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.tuples(st.integers(1, 25), st.integers(0, 90)), min_size=1, max_size=12),
)
def test_repairs_sealed_at_once_are_those_made_and_wrapped_one_by_one(code, seed, sizes):  # type: ignore[no-untyped-def]
    for unit, packets in units(code, seed, sizes):
        symbols = unit.code.encode(packets, unit.r, unit.seed)
        assert [repair.symbol for repair in unit.repairs()] == symbols
        number = MODULUS - 1
        rows = np.zeros((unit.r, FRONT + REPAIR_HEAD_BYTES + unit.symbol_bytes), np.uint8)
        told = (rows, unit.code.id, unit.seed, unit.position, unit.pieces)
        capstan_native.seal_repairs(HEADROOM, 5, 77, number, 123, 9, told)
        for index, symbol in enumerate(symbols):
            body = RepairHead(unit.code.id, len(packets), unit.r, index, unit.seed).encode() + symbol
            expected = encode_fields(Kind.REPAIR, 5, 77, number + index, 123, 9, unit.position, body)
            assert rows[index, HEADROOM:].tobytes() == expected
        assert not rows[:, :HEADROOM].any()


def test_what_no_unit_can_be_is_refused_and_nothing_is_written() -> None:
    sources, out = np.ones((3, FRONT + 10), np.uint8), np.zeros((2, FRONT + 12 + 12), np.uint8)
    whole = (sources, 0, 3, FRONT, 10)
    head = (HEADROOM, 5, 77, 1, 2, 3)
    for packets in (
        [],
        [b""],
        [(sources, 0, 3, FRONT, 11)],
        [(sources, 0, 3, 71, 0)],
        [(sources, 0, 3, FRONT, 0)],
        [(sources, 0, 4, FRONT, 10)],
        [(sources, 2, 2, FRONT, 10)],
        [whole, b"x" * 11],
    ):
        with pytest.raises(ValueError, match=r"."):
            capstan_native.seal_repairs(*head, (out, 4, 1, 4, packets))
    with pytest.raises(ValueError, match="code number 9"):
        capstan_native.seal_repairs(*head, (out, 9, 1, 4, [whole]))
    both = np.ones((2, FRONT + 24), np.uint8)
    with pytest.raises(ValueError, match="over the packets"):
        capstan_native.seal_repairs(*head, (both, 4, 1, 4, [(both, 0, 2, FRONT + 14, 10)]))
    rows, good = np.ones((4, FRONT + 10), np.uint8), (out, 4, 1, 4, [whole])
    for units in ([(5, good)], [(3, good), (2, good)], [(2, (out, 9, 1, 4, [whole]))]):
        with pytest.raises(ValueError, match=r"."):
            capstan_native.seal_coded(rows, HEADROOM, 10, *head[1:], 4, units)
    assert (rows == 1).all()
    assert not out.any()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0, 5, MODULUS - 40]))
def test_outstanding_datagrams_are_told_of_once(seed: int, number: int) -> None:
    rng, log, model, now = np.random.default_rng(seed), Outstanding(), dict[int, float](), 0.0
    for _ in range(80):
        now += float(rng.random())
        number += int(rng.integers(0, 3))  # datagrams that are not waited for
        count = int(rng.integers(1, 60))
        if count == 1:
            log.sent(number % MODULUS, now)
        else:
            log.sent_many(number % MODULUS, count, now)
        model.update(dict.fromkeys(range(number, number + count), now))
        number += count
        told = (number - rng.integers(-5, 200, int(rng.integers(0, 50)))).tolist()
        if rng.random() < 0.5:
            told = list(range(told[0], told[0] + len(told))) if told else []
        left = {one: model.pop(one) for one in told if one in model}
        newest = max(left.values(), default=None)
        assert log.arrived_many([one % MODULUS for one in told]) == (len(left), newest)
        before = now - float(rng.random()) * 5
        late = [one for one, when in model.items() if when < before]
        assert log.overdue(before) == len(late)
        for one in late:
            del model[one]


def test_no_more_datagrams_are_waited_for_than_are_remembered() -> None:
    log = Outstanding()
    for at in range(0, SentLog.RING + 640, 64):
        log.sent_many(at, 64, at * 1.0)
    assert log.arrived_many([639, 640]) == (1, 640.0)
    assert log.overdue(1e9) == SentLog.RING - 1


def test_surplus_repairs_are_counted_at_once_and_others_are_not_taken() -> None:
    packets = [bytes([index]) * 50 for index in range(8)]
    decoder = UnitDecoder()
    for index, packet in enumerate(packets[:7]):
        decoder.source(index, packet, 0.0)
    bodies = [RepairHead(4, 8, 2, index, 1).encode() + bytes(52) for index in range(2)]  # type: ignore[arg-type]
    assert not decoder.surplus_run(0, bodies, 0.0), "a source is missing"
    decoder.source(7, packets[7], 0.0)
    assert decoder.surplus_run(0, bodies, 0.0)
    assert (decoder.counters.repairs, decoder.counters.surplus_repairs) == (2, 2)
    for wrong in (bodies[0][:12] + b"\0\0", b"\x09" + bodies[0][1:], b"\4\x08\x02\x02" + bodies[0][4:]):
        assert not decoder.surplus_run(0, [bodies[0], wrong], 0.0)
    assert decoder.counters.repairs == 2


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([0, MODULUS - 30]),
    st.lists(st.integers(0, 39), max_size=4),
    st.integers(1, 40),
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 60), st.integers(1, 40), st.integers(0, 3)), max_size=3
    ),
)
def test_repairs_among_sources_are_surplus_where_each_would_be(first, lost, count, repairs):  # type: ignore[no-untyped-def]
    """40 sources without the lost ones, then *count* as a run, among which are repairs: behind how many, unit, k."""
    at_once, singly = UnitDecoder(), UnitDecoder()
    for decoder in (at_once, singly):
        for place in range(40):
            if place not in lost:
                decoder.source(first + place, bytes([place + 1]) * 9, 0.0)
    position, packets = (first + 40) % MODULUS, [bytes([index + 1]) * 9 for index in range(count)]
    among = [
        (
            min(behind, count),
            (first + unit) % MODULUS,
            [RepairHead(CodeId.MDS, k, 3, index, 1).encode() + bytes(11) for index in range(which % 3 + 1)],
        )
        for behind, unit, k, which in sorted(repairs)
    ]
    assert at_once.takes_run(position, count, 0.0)
    if not at_once.needs_none_of(position, among):
        return
    at_once.source_run(position, packets, 0.0)
    at_once.surplus(sum(len(bodies) for _, _, bodies in among))
    done = 0
    for behind, unit, bodies in [*among, (count, 0, [])]:
        for packet in packets[done:behind]:
            assert singly.source(position + done, packet, 0.0) == []
            done += 1
        for body in bodies:
            head, symbol = RepairHead.decode(memoryview(body))
            assert singly.repair(unit, head, bytes(symbol), 0.0) == []
    assert at_once.counters == singly.counters


def test_repairs_that_cannot_be_are_no_surplus() -> None:
    decoder = UnitDecoder()
    for place in range(8):
        decoder.source(place, b"x" * 9, 0.0)
    head = RepairHead(CodeId.MDS, 8, 3, 0, 1).encode()
    assert decoder.needs_none_of(8, [(0, 0, [head + bytes(11)])])
    assert not decoder.needs_none_of(8, [(0, 1, [head + bytes(11)])]), "position 8 comes behind it"
    assert decoder.needs_none_of(8, [(1, 1, [head + bytes(11)])])
    for wrong in (
        head,
        head + b"\0\0",
        b"\x09" + head[1:] + bytes(11),
        head[:1] + b"\0" + head[2:] + bytes(11),
    ):
        assert not decoder.needs_none_of(8, [(0, 0, [wrong])])
    assert not UnitDecoder().needs_none_of(8, [(0, 0, [head + bytes(11)])])


def test_a_burst_arrives_as_one_run_and_its_parts_are_its_datagrams() -> None:
    sources, unit = [b"s" * 20] * 5, [b"\4\3\2\0" + b"r" * 20, b"\4\3\2\1" + b"r" * 20]
    run = ("10.0.0.1", 0x20, 1, 5, 77, MODULUS - 2, 9, 4, MODULUS - 1, None, list(range(9)), sources)
    some = parts((run, [(3, 7, unit), (5, 8, unit)]))
    assert [(one[2], one[5], one[8], one[10]) for one in some] == [
        (1, MODULUS - 2, MODULUS - 1, [0, 1, 2]),
        (2, 1, 7, [3, 4]),
        (1, 3, 2, [5, 6]),
        (2, 5, 8, [7, 8]),
    ]
    assert [body for one in some for body in one[11]] == sources[:3] + unit + sources[3:] + unit
