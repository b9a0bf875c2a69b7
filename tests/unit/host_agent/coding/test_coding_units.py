"""Packets in, repairs out, packets back: encoder and decoder of one flow over paths that lose, delay and lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from capstan_native import UnitDecoder
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.coding.unit import Repair, UnitEncoder
from protocol.datagram import CodeId, RepairHead
from protocol.policy import CodingPolicy

MODULUS = 1 << 32
MAX_K, WINDOW = UnitDecoder.MAX_K, UnitDecoder.WINDOW
CODES = ("xor", "rlc", "ldpc", "mds")


def coding(code: str = "rlc", **more: object) -> CodingPolicy:
    return CodingPolicy(max_overhead=8.0, code=code, **{"redundancy": "paper", **more})  # type: ignore[arg-type]


def encoder(policy: CodingPolicy, blocking: float = 0.2, k: int = 32, seed: int = 1) -> UnitEncoder:
    made = UnitEncoder(policy, np.random.default_rng(seed))
    made.set_redundancy(blocking, k)
    return made


def packets_of(count: int, seed: int, most: int = 200) -> list[bytes]:
    rng = np.random.default_rng(seed)
    return [rng.bytes(int(rng.integers(1, most))) for _ in range(count)]


def unit_of(packets: list[bytes], first: int = 0, code: str = "rlc", blocking: float = 0.2) -> list[Repair]:
    sender = encoder(coding(code, max_k=MAX_K, max_r=64), blocking, len(packets))
    made: list[Repair] = []
    for index, packet in enumerate(packets):
        made += sender.add(first + index, packet, 0.0, False)
    return made


# encoder


def test_a_unit_closes_at_k_with_the_papers_repairs() -> None:
    sender = encoder(coding(), blocking=0.2, k=10)
    made = [sender.add(7 + index, b"x" * (index + 1), 0.0, False) for index in range(10)]
    assert [len(repairs) for repairs in made] == [0] * 9 + [3]  # ceil(10 / 0.8 - 10)
    assert [(r.position, r.head.k, r.head.r, r.head.index) for r in made[-1]] == [
        (7, 10, 3, i) for i in range(3)
    ]
    assert {len(r.symbol) for r in made[-1]} == {2 + 10}
    assert len({r.head.seed for r in made[-1]}) == 1
    assert sender.deadline() is None


def test_a_push_closes_the_unit_with_repairs_for_what_it_holds() -> None:
    sender = encoder(coding(), blocking=0.2, k=10)
    assert sender.add(0, b"a", 0.0, False) == []
    repairs = sender.add(1, b"bc", 0.0, True)
    assert [(r.head.k, r.head.r) for r in repairs] == [(2, 1)]


def test_an_idle_unit_closes_at_its_deadline_and_not_before() -> None:
    sender = encoder(coding(flush_s=0.005))
    assert sender.deadline() is None
    sender.add(0, b"a", 1.0, False)
    sender.add(1, b"b", 1.002, False)
    assert sender.deadline() == pytest.approx(1.007)
    assert sender.flush(1.0069) == []
    assert [r.head.k for r in sender.flush(1.0071)] == [2]
    assert sender.flush(9.0) == []
    assert sender.open_packets == 0


def test_a_jump_of_positions_closes_the_unit_before_it() -> None:
    sender = encoder(coding())
    sender.add(5, b"a", 0.0, False)
    sender.add(6, b"b", 0.0, False)
    assert [(r.position, r.head.k) for r in sender.add(9, b"c", 0.0, False)] == [(5, 2)]
    assert [(r.position, r.head.k) for r in sender.close()] == [(9, 1)]


def test_a_unit_goes_on_across_the_wrap_of_positions() -> None:
    sender = encoder(coding(), k=4)
    made = [sender.add(position, b"a", 0.0, False) for position in (MODULUS - 2, MODULUS - 1, 0, 1)]
    assert [len(repairs) for repairs in made] == [0, 0, 0, 1]
    assert (made[3][0].position, made[3][0].head.k) == (MODULUS - 2, 4)


def test_nothing_is_added_where_nothing_is_blocked() -> None:
    for rule in ("paper", "target-decode-probability"):
        sender = encoder(coding(redundancy=rule), blocking=0.0, k=4)
        assert [sender.add(i, b"a", 0.0, False) for i in range(4)] == [[]] * 4
        assert sender.units == 1


def test_unit_size_is_cut_to_the_policys() -> None:
    sender = encoder(coding(max_k=4), k=100)
    assert [len(sender.add(i, b"a", 0.0, False)) for i in range(4)] == [0, 0, 0, 1]
    sender.set_redundancy(0.2, 0)
    assert len(sender.add(4, b"a", 0.0, False)) == 1


@pytest.mark.parametrize("packet", [b"", bytes(65536)])
def test_packets_that_cannot_be_coded_are_refused(packet: bytes) -> None:
    with pytest.raises(ValueError, match="cannot code a packet of"):
        encoder(coding()).add(0, packet, 0.0, False)


def test_the_same_seed_gives_the_same_repairs() -> None:
    packets = packets_of(40, 3)
    assert unit_of(packets) == unit_of(packets)


# both


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    start=st.sampled_from([0, 5, MODULUS - 20, MODULUS // 2 - 7]),
    loss=st.sampled_from([0.05, 0.15, 0.3]),
    spread=st.sampled_from([0.0, 5.0, 40.0]),
)
def test_rebuilt_packets_are_exactly_those_that_were_sent(
    code: str, seed: int, start: int, loss: float, spread: float
) -> None:
    """Loss, reordering and duplication on the way; positions that wrap around."""
    rng = np.random.default_rng(seed)
    sender = encoder(coding(code), blocking=0.25, k=int(rng.integers(1, 20)), seed=seed)
    sent = dict(zip([(start + i) % MODULUS for i in range(60)], packets_of(60, seed, 100), strict=True))
    way: list[tuple[float, int | Repair]] = []
    for clock, (position, packet) in enumerate(sent.items()):
        for item in (position, *sender.add(position, packet, float(clock), bool(rng.random() < 0.1))):
            for _ in range(2 if rng.random() < 0.1 else 1):
                if rng.random() >= loss:
                    way.append((clock + spread * rng.random(), item))
    way += [(70.0, repair) for repair in sender.flush(1e9)]
    way.sort(key=lambda event: event[0])
    decoder = UnitDecoder()
    arrived: set[int] = set()
    rebuilt: dict[int, bytes] = {}
    for number, (_, item) in enumerate(way):
        now = number * 1e-4
        if isinstance(item, Repair):
            out = decoder.repair(*item, now)
        else:
            out = decoder.source(item, sent[item], now)
            arrived.add(item)
        for position, packet in out:
            assert position not in arrived, "a source that was there came again as rebuilt"
            assert position not in rebuilt, "rebuilt twice"
            assert packet == sent[position]
            rebuilt[position] = packet
    assert decoder.counters.recovered == len(rebuilt)
    assert decoder.counters.failed_units == 0
    assert decoder.counters.malformed_repairs == decoder.counters.inconsistent_repairs == 0
    assert all(decoder.known(position) for position in arrived | set(rebuilt))


@settings(max_examples=30)
@given(k=st.integers(1, 30), seed=st.integers(0, 2**32), data=st.data())
def test_any_k_of_a_units_packets_give_all_of_them(k: int, seed: int, data: st.DataObject) -> None:
    """RLC, in any order; units that lack rank (1/255) need a packet or two more."""
    packets = packets_of(k, seed)
    repairs = unit_of(packets, MODULUS - 3, blocking=0.45)
    everything: list[int | Repair] = [*range(k), *repairs]
    order = data.draw(st.permutations(everything))
    decoder = UnitDecoder()
    have: dict[int, bytes] = {}
    for count, item in enumerate(order, 1):
        if isinstance(item, Repair):
            out = decoder.repair(*item, 0.0)
        else:
            out = decoder.source(MODULUS - 3 + item, packets[item], 0.0)
            have[item] = packets[item]
        have.update({(position - (MODULUS - 3)) % MODULUS: packet for position, packet in out})
        if count == k + 2:
            assert len(have) == k
    assert have == dict(enumerate(packets))


@pytest.mark.parametrize("start", [MODULUS - 5, MODULUS // 2 - 5])
def test_a_rebuilt_run_comes_out_in_order_across_the_wrap(start: int) -> None:
    packets = packets_of(10, 4)
    repairs = unit_of(packets, start, blocking=0.4)
    decoder = UnitDecoder()
    for index in (0, 9):
        decoder.source((start + index) % MODULUS, packets[index], 0.0)
    for index in (3, 7):
        decoder.source((start + index) % MODULUS, packets[index], 0.0)
    out: list[tuple[int, bytes]] = []
    for repair in repairs:
        out += decoder.repair(*repair, 0.0)
    assert [position for position, _ in out] == [(start + i) % MODULUS for i in (1, 2, 4, 5, 6, 8)]


def test_overlapping_units_help_one_another() -> None:
    """What one unit rebuilds is the source that another one lacked."""
    packets = packets_of(9, 5)
    first = unit_of(packets[:6], 0, blocking=0.15)[:1]
    second = unit_of(packets[4:], 4, blocking=0.15)[:1]
    decoder = UnitDecoder()
    for index in (0, 1, 2, 3, 7, 8):
        decoder.source(index, packets[index], 0.0)  # 4, 5 and 6 are missing
    assert decoder.repair(*first[0], 0.0) == []
    assert decoder.repair(*second[0], 0.0) == []
    assert decoder.source(5, packets[5], 0.0) == [(4, packets[4]), (6, packets[6])]


def test_known_pending_and_shortfall_follow_a_gap() -> None:
    packets = packets_of(8, 6)
    repairs = unit_of(packets, 100, blocking=0.3)  # r = 4
    decoder = UnitDecoder()
    for index in (0, 1, 5, 6, 7):
        decoder.source(100 + index, packets[index], 0.0)
    assert decoder.pending(102)
    assert decoder.shortfall(102) is None
    assert not decoder.pending(100)
    assert decoder.shortfall(100) == 0
    decoder.repair(*repairs[0], 0.0)
    assert decoder.shortfall(102) == 2
    decoder.source(103, packets[3], 0.0)
    assert decoder.shortfall(102) == 1
    assert dict(decoder.repair(*repairs[3], 0.0)) == {102: packets[2], 104: packets[4]}
    assert not decoder.pending(102)
    assert decoder.known(102)
    decoder.repair(*repairs[1], 0.0)
    assert decoder.counters.surplus_repairs == 1
    decoder.source(102, packets[2], 0.0)
    assert decoder.counters.duplicate_sources == 1


def test_old_units_and_old_sources_are_forgotten() -> None:
    packets = packets_of(8, 7)
    repairs = unit_of(packets, 0, blocking=0.3)
    decoder = UnitDecoder(max_age_s=1.0)
    decoder.source(0, packets[0], 0.0)
    decoder.repair(*repairs[0], 5.0)
    assert decoder.deadline() == pytest.approx(6.0)
    decoder.expire(5.9)
    assert decoder.kept_units == 1
    decoder.expire(6.0)
    assert (decoder.kept_units, decoder.counters.expired_units, decoder.deadline()) == (0, 1, None)
    for position in range(8, WINDOW + 20):
        decoder.source(position, b"y", 6.0)
    assert not decoder.known(0)
    assert not decoder.pending(3)
    assert decoder.source(3, packets[3], 6.0) == []
    assert decoder.repair(*repairs[1], 6.0) == []
    assert (decoder.counters.late_sources, decoder.counters.late_repairs) == (1, 1)


@pytest.mark.parametrize("start", [0, MODULUS - 300, MODULUS // 2 - 300])
def test_the_window_of_remembered_sources_moves_on(start: int) -> None:
    decoder = UnitDecoder()
    for index in range(3 * WINDOW):
        decoder.source((start + index) % MODULUS, b"12345", 0.0)
        assert decoder.kept_bytes == 5 * min(index + 1, WINDOW + 1)
    assert not decoder.known((start + 2 * WINDOW - 2) % MODULUS)
    assert decoder.known((start + 2 * WINDOW - 1) % MODULUS)


def test_rebuilt_packets_of_a_flow_that_lost_all_sources() -> None:
    packets = packets_of(3, 11)
    repairs = unit_of(packets, 50, blocking=0.6)
    assert len(repairs) >= 4
    decoder = UnitDecoder()
    out = [found for repair in repairs for found in decoder.repair(*repair, 0.0)]
    assert out == [(50 + index, packet) for index, packet in enumerate(packets)]


# hostile peers


HEADS = st.builds(
    RepairHead,
    code=st.sampled_from(CodeId),
    k=st.integers(0, 255),
    r=st.integers(0, 255),
    index=st.integers(0, 255),
    seed=st.sampled_from([0, 1, 2**32 - 1]),
)
POSITIONS = st.one_of(
    st.integers(0, 40), st.sampled_from([MODULUS - 1, MODULUS // 2, MODULUS // 2 + 1, 5000])
)


@settings(max_examples=60)
@given(
    events=st.lists(
        st.one_of(
            st.tuples(POSITIONS, st.binary(max_size=40)),
            st.tuples(POSITIONS, HEADS, st.one_of(st.binary(max_size=40), st.just(bytes(70000)))),
            # likely to meet: one unit's head, random symbols of one length
            st.tuples(
                st.just(3),
                st.builds(
                    RepairHead,
                    code=st.sampled_from(CodeId),
                    k=st.just(9),
                    r=st.just(4),
                    index=st.integers(0, 3),
                    seed=st.just(1),
                ),
                st.binary(min_size=20, max_size=20),
            ),
        ),
        max_size=60,
    )
)
def test_nothing_a_peer_sends_breaks_the_decoder(events: list[tuple[object, ...]]) -> None:
    decoder = UnitDecoder(max_bytes=3000, max_units=4)
    delivered: set[int] = set()
    for number, event in enumerate(events):
        call: Callable[..., list[tuple[int, bytes]]] = decoder.source if len(event) == 2 else decoder.repair
        for position, packet in call(*event, number * 0.05):
            assert 0 <= position < MODULUS
            assert 0 < len(packet) <= 65535
            delivered.add(position)
        assert decoder.kept_units <= 4
        assert decoder.kept_bytes <= 3000
        decoder.pending(3)
        decoder.shortfall(3)
    counters = decoder.counters
    assert counters.sources + counters.repairs == len(events)


@pytest.mark.parametrize(
    ("changes", "symbol"),
    [({"k": 9}, 0), ({"r": 5}, 0), ({"seed": 2}, 0), ({"code": CodeId.XOR}, 0), ({}, -1), ({}, 1)],
)
def test_repairs_that_disagree_on_their_unit_are_counted_and_harmless(
    changes: dict[str, object], symbol: int
) -> None:
    packets = packets_of(8, 8)
    repairs = unit_of(packets, 0, blocking=0.3)
    decoder = UnitDecoder()
    for index in range(6):
        decoder.source(index, packets[index], 0.0)
    assert decoder.repair(*repairs[0], 0.0) == []
    head = repairs[1].head
    fields = {name: getattr(head, name) for name in ("code", "k", "r", "index", "seed")}
    body = repairs[1].symbol[:symbol] if symbol < 0 else repairs[1].symbol + bytes(symbol)
    assert decoder.repair(0, RepairHead(**{**fields, **changes}), body, 0.0) == []
    assert decoder.counters.inconsistent_repairs == 1
    assert dict(decoder.repair(*repairs[2], 0.0)) == {6: packets[6], 7: packets[7]}


@pytest.mark.parametrize(
    "head",
    [
        RepairHead(CodeId.RLC, 0, 1, 0, 0),
        RepairHead(CodeId.RLC, MAX_K + 1, 1, 0, 0),
        RepairHead(CodeId.RLC, 4, 65, 0, 0),
        RepairHead(CodeId.RLC, 4, 2, 2, 0),
    ],
)
def test_impossible_heads_are_counted(head: RepairHead) -> None:
    decoder = UnitDecoder()
    assert decoder.repair(0, head, bytes(40), 0.0) == []
    assert (decoder.counters.malformed_repairs, decoder.kept_units) == (1, 0)


@pytest.mark.parametrize("symbol", [b"", b"\0", b"\0\0", bytes(65538)])
def test_impossible_symbols_are_counted(symbol: bytes) -> None:
    decoder = UnitDecoder()
    assert decoder.repair(0, RepairHead(CodeId.RLC, 4, 2, 0, 0), symbol, 0.0) == []
    assert decoder.counters.malformed_repairs == 1


@pytest.mark.parametrize("code", CODES)
def test_a_unit_with_a_corrupt_repair_yields_no_wrong_bytes_where_that_shows(code: str) -> None:
    """A rebuilt length that does not fit, or no zeros where there must be: the unit is given up, and stays so."""
    packets = [bytes([i]) * (40 if i else 10) for i in range(8)]  # packet 0 has 30 bytes of padding
    repairs = unit_of(packets, 0, code=code, blocking=0.3)
    repair = next(r for r in repairs if code != "xor" or r.head.index == 0)
    decoder = UnitDecoder()
    for index in range(1, 8):
        decoder.source(index, packets[index], 0.0)
    out = decoder.repair(
        repair.position, repair.head, repair.symbol[:-1] + bytes([repair.symbol[-1] ^ 1]), 0.0
    )
    if code == "ldpc":  # the first repair may not cover packet 0
        for other in repairs[1:]:
            out += decoder.repair(*other, 0.0)
    assert out == []
    assert decoder.counters.failed_units == 1
    assert not decoder.pending(0)
    assert decoder.repair(*repairs[-1], 0.0) == []
    assert decoder.counters.late_repairs >= 1
    assert decoder.source(0, packets[0], 0.0) == []
    assert decoder.known(0)


def test_a_source_too_long_for_its_unit_gives_the_unit_up() -> None:
    packets = packets_of(4, 9, most=20)
    repairs = unit_of(packets, 0, blocking=0.4)
    decoder = UnitDecoder()
    decoder.source(0, bytes(500), 0.0)
    for index in (1, 2):
        decoder.source(index, packets[index], 0.0)
    assert decoder.repair(*repairs[0], 0.0) == []
    assert decoder.counters.failed_units == 1


def test_memory_is_bounded_in_bytes_and_units() -> None:
    decoder = UnitDecoder(max_bytes=100_000, max_units=8)
    for number in range(300):
        decoder.source(1000 * number, bytes(1400), 0.0)
        decoder.repair(1000 * number + 5, RepairHead(CodeId.RLC, 100, 60, 1, number), bytes(1402), 0.0)
        assert decoder.kept_bytes <= 100_000
        assert decoder.kept_units <= 8
    giant = UnitDecoder(max_bytes=100_000)
    for index in range(64):
        giant.repair(0, RepairHead(CodeId.RLC, 100, 64, index, 1), bytes(65000), 0.0)
        assert giant.kept_bytes <= 100_000


def test_a_peer_may_start_anywhere_and_early_packets_come_late() -> None:
    packets = packets_of(6, 10)
    repairs = unit_of(packets, MODULUS - 2, blocking=0.3)
    decoder = UnitDecoder()
    decoder.source(3, packets[5], 0.0)
    out: dict[int, bytes] = {}
    for repair in repairs:
        out.update(decoder.repair(*repair, 0.0))
    for index in (0, 1):
        out.update(decoder.source(MODULUS - 2 + index, packets[index], 0.0))
    missing = {(MODULUS - 2 + i) % MODULUS: packets[i] for i in (2, 3, 4)}
    assert len(repairs) == 3
    assert out == missing
