"""The codes themselves: what they recover, what they must not, and how often they fail."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_agent.coding.codes import Code, code_named
from host_agent.coding.ldpc_failure import measure
from host_agent.coding.native import ContradictionError, ldpc_rows
from protocol.datagram import CodeId
from tests.unit import coding_reference as reference

ROOT = Path(__file__).resolve().parents[4]
CODES = [code_named(name) for name in ("xor", "rlc", "ldpc", "mds")]
SEEDS = st.integers(0, 2**32 - 1)


def packets_of(k: int, seed: int, most: int = 40) -> list[bytes]:
    """Return packets of 1..most B: lengths differ within the unit."""
    rng = np.random.default_rng(seed)
    return [rng.bytes(int(rng.integers(1, most + 1))) for _ in range(k)]


def without(packets: list[bytes], lost: list[int]) -> list[bytes | None]:
    return [None if index in lost else packet for index, packet in enumerate(packets)]


@pytest.mark.slow
@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@given(k=st.integers(1, 40), r=st.integers(1, 16), seed=SEEDS, data=st.data())
def test_what_is_determined_is_rebuilt_and_nothing_else(
    code: Code, k: int, r: int, seed: int, data: st.DataObject
) -> None:
    r = min(r, reference.most_repairs(code.name, k))
    packets = packets_of(k, seed)
    made = code.encode(packets, r, seed)
    assert [len(symbol) for symbol in made] == [2 + max(map(len, packets))] * r
    lost = sorted(data.draw(st.sets(st.integers(0, k - 1), min_size=1)))
    got = data.draw(st.permutations(range(r)))[: data.draw(st.integers(1, r))]
    found = code.decode(without(packets, lost), {j: made[j] for j in got}, r, seed)
    expected = reference.determined(code.name, k, r, seed, lost, got)
    assert found == [(index, packets[index]) for index in sorted(expected)]
    # of rlc's units, one in a thousand has a source that even too few repairs happen to determine
    if code.name == "mds" and not code.worth_trying(len(lost), len(got)):
        assert found == []


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@given(k=st.integers(1, 40), r=st.integers(4, 16), seed=SEEDS, data=st.data())
def test_one_lost_source_and_all_repairs_always_decode(
    code: Code, k: int, r: int, seed: int, data: st.DataObject
) -> None:
    r = min(r, reference.most_repairs(code.name, k))
    packets = packets_of(k, seed)
    lost = data.draw(st.integers(0, k - 1))
    repairs = dict(enumerate(code.encode(packets, r, seed)))
    assert code.decode(without(packets, [lost]), repairs, r, seed) == [(lost, packets[lost])]


@given(k=st.integers(1, 64), r=st.integers(1, 16), seed=SEEDS, data=st.data())
def test_rlc_heals_any_single_loss_with_any_single_repair(
    k: int, r: int, seed: int, data: st.DataObject
) -> None:
    code = code_named("rlc")
    packets = packets_of(k, seed)
    index = data.draw(st.integers(0, r - 1))
    lost = data.draw(st.integers(0, k - 1))
    repairs = {index: code.encode(packets, r, seed)[index]}
    assert code.decode(without(packets, [lost]), repairs, r, seed) == [(lost, packets[lost])]


@given(k=st.integers(1, 128), r=st.integers(1, 64), seed=SEEDS, data=st.data())
def test_any_k_symbols_of_an_mds_unit_give_it(k: int, r: int, seed: int, data: st.DataObject) -> None:
    code = code_named("mds")
    rng = np.random.default_rng(seed)
    packets = packets_of(k, seed, 9)
    losses = data.draw(st.integers(1, min(k, r)))
    lost = sorted(rng.choice(k, losses, replace=False).tolist())
    made = code.encode(packets, r, seed)
    repairs = {j: made[j] for j in rng.choice(r, losses, replace=False).tolist()}
    assert code.decode(without(packets, lost), repairs, r, seed) == [(i, packets[i]) for i in lost]


@pytest.mark.parametrize(
    ("losses", "surplus", "least", "most"),
    [(2, 0, 0.0015, 0.0075), (6, 0, 0.0015, 0.0075), (6, 1, 0.0, 0.0009)],
)
def test_rlc_fails_as_random_matrices_do(losses: int, surplus: int, least: float, most: float) -> None:
    """Any k of k + r packets decode, but for 1/255 at no surplus and 1/65280 at one (2500 units)."""
    rng = np.random.default_rng(losses)
    code = code_named("rlc")
    packets = packets_of(16, 1)
    failures = 0
    for seed in range(2500):
        lost = sorted(rng.choice(16, losses, replace=False).tolist())
        made = code.encode(packets, 12, seed)
        repairs = {j: made[j] for j in rng.choice(12, losses + surplus, replace=False).tolist()}
        failures += len(code.decode(without(packets, lost), repairs, 12, seed)) < losses
    assert least <= failures / 2500 <= most


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_symbols_stay_what_they_are_on_the_wire(code: Code) -> None:
    """Two agents of different versions must agree. The first two symbols of XOR can be read off."""
    packets = [b"abcd", b"ab", b"\0\0\0\3"]
    made = code.encode(packets, 2, 7)
    assert made == reference.encode(code.name, packets, 2, 7)
    if code.name == "xor":
        assert [symbol.hex() for symbol in made] == ["000061626367", "000261620000"]


def test_coefficients_stay_what_they_are_on_the_wire() -> None:
    assert reference.generator("rlc", 6, 1, 1).tolist() == [[134, 184, 40, 74, 101, 251]]
    assert reference.generator("mds", 6, 1, 1).tolist() == [[1, 1, 1, 1, 1, 1]]


@given(k=st.integers(1, 64), r=st.integers(1, 24), seed=SEEDS)
def test_ldpc_graph_has_its_degrees(k: int, r: int, seed: int) -> None:
    rows = ldpc_rows(k, r, seed)
    assert len(rows) == r
    degree = min(3, max(1, r - 1))
    for source in range(k):
        assert sum(source in row for row in rows) >= degree
    assert all(len(row) >= (2 if k > 2 else 1) for row in rows)
    # even rows: the construction deals the 3k ones out in turn; a source that would get a row twice gets any other
    # instead, so sizes differ by chance, and less than if all were drawn
    spread = [len(row) for row in rows]
    if degree * k >= 4 * r:
        assert max(spread) - min(spread) <= 3 + degree + 2 * math.sqrt(degree * k / r)


@pytest.mark.parametrize(("k", "r"), [(4, 3), (16, 6), (32, 8), (64, 12)])
def test_ldpc_failure_table_agrees_with_a_fresh_measurement(k: int, r: int) -> None:
    fresh = measure(k, r, graphs=120, patterns=6, source=random.Random(99))
    lines = (ROOT / "native/agent/src/coding/ldpc_failure.txt").read_text(encoding="ascii").splitlines()
    (found,) = [line for line in lines if line.startswith(f"{k} {r} ")]
    table = [int(count) / 1000 for count in found.split()[2:]]
    assert fresh == pytest.approx(table, abs=0.08)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@given(k=st.integers(4, 20), seed=SEEDS, data=st.data())
def test_surplus_repairs_betray_a_wrong_symbol(code: Code, k: int, seed: int, data: st.DataObject) -> None:
    """One loss, one wrong repair: every code with repairs to spare refuses or rebuilds only what is right."""
    r = min(6, k)
    packets = packets_of(k, seed)
    repairs = dict(enumerate(code.encode(packets, r, seed)))
    wrong = data.draw(st.integers(0, r - 1))
    place = data.draw(st.integers(0, len(repairs[wrong]) - 1))
    symbol = bytearray(repairs[wrong])
    symbol[place] ^= data.draw(st.integers(1, 255))
    repairs[wrong] = bytes(symbol)
    lost = data.draw(st.integers(0, k - 1))
    if code.name == "xor" and wrong == lost % r:
        return  # a parity has no surplus in its own group
    with pytest.raises(ContradictionError):
        code.decode(without(packets, [lost]), repairs, r, seed)


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        (b"\x00\x00abc", "length of 0 B"),
        (b"\x00\x04abc", "length of 4 B"),
        (b"\xff\xffabc", "length of 65535 B"),
        (b"\x00\x02abc", "not followed by zeros"),
    ],
)
def test_a_symbol_that_is_no_packet_is_refused(symbol: bytes, text: str) -> None:
    with pytest.raises(ContradictionError, match=text):
        code_named("mds").decode([None], {0: symbol}, 1, 0)


@pytest.mark.parametrize("packet", [b"abcd", b""])
def test_a_packet_that_does_not_fit_its_unit_is_a_contradiction(packet: bytes) -> None:
    with pytest.raises(ContradictionError, match=f"a packet of {len(packet)} B does not fit"):
        code_named("mds").decode([packet, None], {0: b"\x00\x03abc"}, 1, 0)


def test_codes_are_found_by_name_and_have_a_number_each() -> None:
    for code in CODES:
        assert code_named(code.name) is code
    assert {code.id for code in CODES} == set(CodeId)
    with pytest.raises(ValueError, match="'raptor' is not known"):
        code_named("raptor")  # type: ignore[arg-type]
