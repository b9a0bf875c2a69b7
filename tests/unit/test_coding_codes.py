"""The codes themselves: what they recover, what they must not, and how often they fail."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_agent.coding.code import Code, ContradictionError
from host_agent.coding.codes import code_named, code_numbered
from host_agent.coding.gf256 import Words
from host_agent.coding.ldpc import ParkMiller, System, rows_of
from host_agent.coding.ldpc_failure import GRID_K, GRID_R, ldpc_failure, measure
from host_agent.coding.rlc import coefficients
from protocol.datagram import CodeId

CODES = [code_named(name) for name in ("xor", "rlc", "ldpc")]
SEEDS = st.integers(0, 2**32 - 1)


def sources_of(k: int, seed: int, words: int = 3) -> Words:
    return np.random.default_rng(seed).integers(0, 1 << 64, (k, words), dtype=np.uint64)


def decode(code: Code, sources: Words, lost: list[int], repairs: dict[int, Words], r: int, seed: int) -> int:
    """Decode, check that whatever is found is right, and say how many were found."""
    received = sources.copy()
    received[lost] = 0
    found = code.decode(received, lost, repairs, r, seed)
    assert set(found) <= set(lost)
    for index, row in found.items():
        assert np.array_equal(row, sources[index])
    return len(found)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@given(k=st.integers(1, 40), r=st.integers(1, 16), seed=SEEDS, data=st.data())
def test_what_is_rebuilt_is_right_whatever_is_missing(
    code: Code, k: int, r: int, seed: int, data: st.DataObject
) -> None:
    r = min(r, code.most_repairs(k))
    sources = sources_of(k, seed)
    made = code.encode(sources, r, seed)
    assert made.shape == (r, 3)
    lost = sorted(data.draw(st.sets(st.integers(0, k - 1), min_size=1)))
    got = data.draw(st.permutations(range(r)))[: data.draw(st.integers(1, r))]
    found = decode(code, sources, lost, {j: made[j] for j in got}, r, seed)
    assert found <= max(len(lost) - 1, 0) or len(got) >= len(lost)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@given(k=st.integers(1, 40), r=st.integers(4, 16), seed=SEEDS, data=st.data())
def test_one_lost_source_and_all_repairs_always_decode(
    code: Code, k: int, r: int, seed: int, data: st.DataObject
) -> None:
    r = min(r, code.most_repairs(k))
    sources = sources_of(k, seed)
    lost = [data.draw(st.integers(0, k - 1))]
    assert decode(code, sources, lost, dict(enumerate(code.encode(sources, r, seed))), r, seed) == 1


@given(k=st.integers(1, 64), r=st.integers(1, 16), seed=SEEDS, data=st.data())
def test_rlc_heals_any_single_loss_with_any_single_repair(
    k: int, r: int, seed: int, data: st.DataObject
) -> None:
    code = code_named("rlc")
    sources = sources_of(k, seed)
    made = code.encode(sources, r, seed)
    index = data.draw(st.integers(0, r - 1))
    assert decode(code, sources, [data.draw(st.integers(0, k - 1))], {index: made[index]}, r, seed) == 1


@pytest.mark.parametrize(
    ("losses", "surplus", "least", "most"),
    [(2, 0, 0.0015, 0.0075), (6, 0, 0.0015, 0.0075), (6, 1, 0.0, 0.0009)],
)
def test_rlc_fails_as_random_matrices_do(losses: int, surplus: int, least: float, most: float) -> None:
    """Any k of k + r packets decode, but for 1/255 at no surplus and 1/65280 at one (2500 units)."""
    rng = np.random.default_rng(losses)
    code = code_named("rlc")
    sources = np.zeros((16, 1), dtype=np.uint64)
    failures = 0
    for seed in range(2500):
        lost = sorted(rng.choice(16, losses, replace=False).tolist())
        got = rng.choice(12, losses + surplus, replace=False).tolist()
        failures += len(code.decode(sources, lost, dict.fromkeys(got, sources[0]), 12, seed)) < losses
    assert least <= failures / 2500 <= most


def test_rlc_coefficients_stay_what_they_are_on_the_wire() -> None:
    """Fixed values, made with Python's integers: two agents of different versions must agree."""

    def by_hand(seed: int, j: int, i: int) -> int:
        mask = (1 << 64) - 1
        state = ((seed << 32 ^ j << 8 ^ i) + 1) * 0x9E3779B97F4A7C15 & mask
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        state = (state ^ state >> 27) * 0x94D049BB133111EB & mask
        return 1 + ((state ^ state >> 31) >> 32) % 255

    for seed in (0, 1, 0xDEADBEEF, 0xFFFFFFFF):
        expected = [[by_hand(seed, j, i) for i in range(128)] for j in (0, 7, 63)]
        assert coefficients(seed, (0, 7, 63), 128).tolist() == expected
    assert coefficients(1, (0,), 6).tolist() == [[134, 184, 40, 74, 101, 251]]


@given(k=st.integers(1, 64), r=st.integers(1, 24), seed=SEEDS)
def test_ldpc_graph_has_its_degrees(k: int, r: int, seed: int) -> None:
    rows = rows_of(k, r, seed)
    assert len(rows) == r
    degree = min(3, max(1, r - 1))
    for source in range(k):
        assert sum(source in row for row in rows) >= degree
    assert all(len(row) >= (2 if k > 2 else 1) for row in rows)
    # even rows: the construction deals the 3k ones out in turn, and only makes up for rows below two
    spread = [len(row) for row in rows]
    if degree * k >= 4 * r:
        assert max(spread) - min(spread) <= 3 + degree


def test_park_miller_is_the_minimal_standard() -> None:
    """RFC 5170, section 5.7: from seed 1 the 10000th state is 1043618065."""
    generator = ParkMiller(0)  # seed 1
    for _ in range(9999):
        generator.below(10)
    assert generator.below(0x7FFFFFFF) == 1043618065


def test_ldpc_peeling_fails_as_often_as_published() -> None:
    """k = 32, r = 8, 4 sources missing, all repairs there: 0.138 (3000 graphs)."""
    draw = random.Random(32)
    nothing = np.zeros(1, dtype=np.uint64)
    repairs = dict.fromkeys(range(8), nothing)
    failures = 0
    for _ in range(3000):
        lost = draw.sample(range(32), 4)
        system = System(32, 8, draw.getrandbits(32), lost, repairs)
        failures += len(system.peel([nothing.copy() for _ in range(8)])) < 4
    assert failures / 3000 == pytest.approx(0.138, abs=0.02)


@given(seed=SEEDS, data=st.data())
def test_ldpc_decodes_whatever_the_rank_allows(seed: int, data: st.DataObject) -> None:
    """Peeling then elimination finds exactly what elimination of the whole generator matrix finds."""
    code = code_named("ldpc")
    k, r = 12, 6
    unit = np.zeros((k, 2), dtype=np.uint64)
    unit[:, 0] = np.uint64(1) << np.arange(k, dtype=np.uint64)
    generator = code.encode(unit, r, seed)[:, 0]
    lost = sorted(data.draw(st.sets(st.integers(0, k - 1), min_size=1, max_size=7)))
    got = sorted(data.draw(st.sets(st.integers(0, r - 1), min_size=1)))
    vectors = [int(generator[j]) & sum(1 << i for i in lost) for j in got]
    # a source is determined if its unit vector lies in the span of the received rows
    span = {0}
    for vector in vectors:
        span |= {vector ^ other for other in span}
    determined = {i for i in lost if 1 << i in span}
    received = unit.copy()
    received[lost] = 0
    repairs = code.encode(unit, r, seed)
    assert set(code.decode(received, lost, {j: repairs[j] for j in got}, r, seed)) == determined


@pytest.mark.parametrize(("k", "r"), [(4, 3), (16, 6), (32, 8), (64, 12)])
def test_ldpc_failure_table_agrees_with_a_fresh_measurement(k: int, r: int) -> None:
    fresh = measure(k, r, 120, 6, random.Random(99))
    table = [ldpc_failure(k, r, missing) for missing in range(1, r + 1)]
    assert fresh == pytest.approx(table, abs=0.08)


def test_ldpc_failure_covers_every_unit() -> None:
    for k in range(1, 129):
        for r in range(1, 65):
            assert ldpc_failure(k, r, 0) == 0.0
            assert ldpc_failure(k, r, r + 1) == 1.0
            assert 0.0 <= ldpc_failure(k, r, r) <= 1.0
    assert (GRID_K[-1], GRID_R[-1]) == (128, 24)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@given(k=st.integers(4, 20), seed=SEEDS, data=st.data())
def test_surplus_repairs_betray_a_wrong_symbol(code: Code, k: int, seed: int, data: st.DataObject) -> None:
    """One loss, one wrong repair: every code with repairs to spare refuses or rebuilds only what is right."""
    r = min(6, k)
    sources = sources_of(k, seed)
    repairs = dict(enumerate(code.encode(sources, r, seed).copy()))
    wrong = data.draw(st.integers(0, r - 1))
    repairs[wrong] = repairs[wrong] ^ np.uint64(data.draw(st.integers(1, 2**64 - 1)))
    lost = data.draw(st.integers(0, k - 1))
    received = sources.copy()
    received[lost] = 0
    if code.name == "xor" and wrong == lost % r:
        return  # a parity has no surplus in its own group
    with pytest.raises(ContradictionError):
        code.decode(received, [lost], repairs, r, seed)


def test_codes_are_found_by_name_and_number() -> None:
    for code in CODES:
        assert code_numbered(code.id) is code_named(code.name) is code
    assert {code.id for code in CODES} == set(CodeId)
    with pytest.raises(ValueError, match="'raptor' is not known"):
        code_named("raptor")  # type: ignore[arg-type]
