"""The native kernels against the definition, on every instruction set; and what malformed input gets."""

from __future__ import annotations

from collections.abc import Callable

import capstan_native
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.datagram import CodeId
from tests.unit import coding_reference as reference

KERNELS = capstan_native.kernels()
NAMES = {CodeId.XOR: "xor", CodeId.RLC: "rlc", CodeId.LDPC: "ldpc", CodeId.MDS: "mds"}
SEEDS = st.integers(0, 2**32 - 1)


def some(seed: int, *shape: int) -> reference.Bytes:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("code", CodeId)
@given(k=st.integers(1, 30), r=st.integers(1, 12), width=st.integers(1, 90), seed=SEEDS, data=st.data())
def test_arrays_are_coded_where_they_are(
    code: CodeId, k: int, r: int, width: int, seed: int, data: st.DataObject
) -> None:
    sources = some(seed, k, width)
    expected = reference.matrix_product(reference.generator(NAMES[code], k, r, seed), sources)
    lost = data.draw(st.permutations(range(k)))[: data.draw(st.integers(0, k))]
    got = data.draw(st.permutations(range(r)))[: data.draw(st.integers(0, r))]
    found = reference.determined(NAMES[code], k, r, seed, lost, got)
    holes = sources.copy()
    holes[lost] = 0x5A  # not read
    for kernel in KERNELS:
        repairs = np.empty((r, width), dtype=np.uint8)
        capstan_native.encode(code, sources, seed, repairs, kernel)
        assert np.array_equal(repairs, expected), kernel
        out = np.zeros((len(lost), width), dtype=np.uint8)
        indices = capstan_native.decode(code, holes, lost, repairs[got], got, r, seed, out, kernel)
        assert indices == sorted(found)
        assert np.array_equal(out[: len(indices)], sources[indices])


@pytest.mark.parametrize("code", CodeId)
@given(packets=st.lists(st.binary(min_size=1, max_size=80), min_size=1, max_size=30), seed=SEEDS)
def test_packets_of_any_lengths_are_coded_as_the_definition_says(
    code: CodeId, packets: list[bytes], seed: int
) -> None:
    expected = reference.encode(NAMES[code], packets, 5, seed)
    for kernel in KERNELS:
        assert capstan_native.encode_packets(code, packets, 5, seed, kernel) == expected


@given(k=st.integers(1, 64), r=st.integers(1, 32), seed=SEEDS)
def test_ldpc_graphs_are_those_of_the_rfc(k: int, r: int, seed: int) -> None:
    assert capstan_native.ldpc_rows(k, r, seed) == [sorted(row) for row in reference.ldpc_rows(k, r, seed)]


def test_the_generator_of_the_reference_is_the_minimal_standard() -> None:
    """RFC 5170, section 5.7: from seed 1 the 10000th state is 1043618065."""
    generator = reference.ParkMiller(0)  # seed 1
    for _ in range(9999):
        generator.below(10)
    assert generator.below(0x7FFFFFFF) == 1043618065


SOURCES = some(1, 4, 70)
REPAIRS = some(2, 2, 70)


def out(rows: int = 2, width: int = 70) -> reference.Bytes:
    return np.full((rows, width), 7, dtype=np.uint8)


def read_only() -> reference.Bytes:
    array = out()
    array.setflags(write=False)
    return array


ENCODINGS: list[tuple[str, Callable[[], object]]] = [
    ("number 9 is not", lambda: capstan_native.encode(9, SOURCES, 0, out())),
    ("'mmx' cannot run", lambda: capstan_native.encode(4, SOURCES, 0, out(), "mmx")),
    ("k = 0, r = 2", lambda: capstan_native.encode(2, SOURCES[:0], 0, out())),
    ("k = 256, r = 1", lambda: capstan_native.encode(2, some(1, 256, 8), 0, out(1, 8))),
    ("k = 4, r = 256", lambda: capstan_native.encode(2, some(1, 4, 8), 0, out(256, 8))),
    ("at most 256", lambda: capstan_native.encode(4, some(1, 200, 8), 0, out(57, 8))),
    ("69 B do not fit", lambda: capstan_native.encode(2, SOURCES, 0, out(2, 69))),
    ("contiguous", lambda: capstan_native.encode(2, SOURCES[:, ::2], 0, out(2, 35))),
    ("two-dimensional", lambda: capstan_native.encode(2, SOURCES[0], 0, out())),
    ("uint8", lambda: capstan_native.encode(2, SOURCES.astype(np.uint16), 0, out())),  # type: ignore[arg-type]
    ("uint8", lambda: capstan_native.encode(2, [b"ab"], 0, out())),  # type: ignore[arg-type]
    ("writable", lambda: capstan_native.encode(2, SOURCES, 0, read_only())),
    ("at least one byte", lambda: capstan_native.encode(2, some(1, 4, 0), 0, out(2, 0))),
    ("overlap", lambda: capstan_native.encode(2, SOURCES, 0, SOURCES[2:])),
]
DECODINGS: list[tuple[str, Callable[[], object]]] = [
    ("given twice", lambda: capstan_native.decode(2, SOURCES, [1, 1], REPAIRS, [0, 1], 2, 0, out())),
    ("out of range", lambda: capstan_native.decode(2, SOURCES, [4], REPAIRS, [0, 1], 2, 0, out())),
    ("given twice", lambda: capstan_native.decode(2, SOURCES, [1], REPAIRS, [1, 1], 2, 0, out())),
    ("repair 2 of r = 2", lambda: capstan_native.decode(2, SOURCES, [1], REPAIRS, [0, 2], 2, 0, out())),
    ("do not fit", lambda: capstan_native.decode(2, SOURCES, [1], REPAIRS, [0], 2, 0, out())),
    ("do not fit", lambda: capstan_native.decode(2, SOURCES, [0, 1, 2], REPAIRS, [0, 1], 2, 0, out())),
    ("do not fit", lambda: capstan_native.decode(2, SOURCES, [1], some(1, 2, 69), [0, 1], 2, 0, out())),
    ("k = 4, r = 0", lambda: capstan_native.decode(2, SOURCES, [1], REPAIRS, [0, 1], 0, 0, out())),
    ("without repairs", lambda: capstan_native.decode_packets(2, [b"a", None], {}, 2, 0)),
    ("repair 3 of r = 2", lambda: capstan_native.decode_packets(2, [None], {3: b"\0\1a"}, 2, 0)),
    ("differ in length", lambda: capstan_native.decode_packets(2, [None], {0: b"\0\1a", 1: b"\0\1ab"}, 2, 0)),
    ("of 2 B cannot be", lambda: capstan_native.decode_packets(2, [None], {0: b"\0\1"}, 2, 0)),
    ("of 0 B cannot be", lambda: capstan_native.encode_packets(2, [b"a", b""], 2, 0)),
    ("65536 B cannot be", lambda: capstan_native.encode_packets(2, [bytes(65536)], 2, 0)),
    ("k = 0", lambda: capstan_native.encode_packets(2, [], 2, 0)),
    ("k = 256", lambda: capstan_native.ldpc_rows(256, 1, 0)),
]


@pytest.mark.parametrize(("text", "call"), ENCODINGS + DECODINGS)
def test_what_cannot_be_is_an_exception(text: str, call: Callable[[], object]) -> None:
    before = SOURCES.copy(), REPAIRS.copy()
    with pytest.raises(ValueError, match=text):
        call()
    assert np.array_equal(before[0], SOURCES)
    assert np.array_equal(before[1], REPAIRS)


@given(
    code=st.integers(0, 6),
    packets=st.lists(st.none() | st.binary(max_size=70), max_size=300),
    repairs=st.dictionaries(st.integers(0, 300), st.binary(max_size=70) | st.just(b"\0\5hello"), max_size=12),
    r=st.integers(0, 300),
    seed=SEEDS,
)
def test_garbage_from_a_peer_gives_packets_or_a_value_error(
    code: int, packets: list[bytes | None], repairs: dict[int, bytes], r: int, seed: int
) -> None:
    try:
        found = capstan_native.decode_packets(code, packets, repairs, r, seed)
    except ValueError:
        return
    assert all(packets[index] is None and packet for index, packet in found)


@pytest.mark.parametrize("code", CodeId)
@given(
    missing=st.sets(st.integers(0, 7), min_size=1),
    symbols=st.dictionaries(st.integers(0, 5), st.binary(min_size=9, max_size=9), min_size=1),
    seed=SEEDS,
)
def test_garbage_that_could_be_a_unit_gives_packets_or_a_contradiction(
    code: CodeId, missing: set[int], symbols: dict[int, bytes], seed: int
) -> None:
    packets = [None if index in missing else b"abcdefg"[: 1 + index % 7] for index in range(8)]
    try:
        found = capstan_native.decode_packets(code, packets, symbols, 6, seed)
    except capstan_native.ContradictionError:
        return
    assert {index for index, _ in found} <= missing
    assert all(1 <= len(packet) <= 7 for _, packet in found)


@pytest.mark.parametrize("seed", [-1, 1 << 32])
def test_a_seed_is_an_unsigned_32_bit_number(seed: int) -> None:
    with pytest.raises(OverflowError):
        capstan_native.encode_packets(2, [b"a"], 1, seed)
