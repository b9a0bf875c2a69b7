"""JSON as it is read of bodies: the same as Python's own reader gives, within limits, while other threads go on."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

import pytest
from capstan_native import JsonContent, JsonError, LongTextError
from hypothesis import given
from hypothesis import strategies as st

MOST_TEXT = 1000
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=40,
)


def collected(content: bytes, piece_bytes: int = 1 << 16) -> JsonContent:
    """Return *content*, given in pieces."""
    made = JsonContent(len(content))
    for begin in range(0, len(content), piece_bytes):
        made.add(content[begin : begin + piece_bytes])
    assert len(made) == len(content)
    return made


def read_json(content: bytes, piece_bytes: int = 1 << 16) -> Any:
    """Return what *content* holds."""
    return collected(content, piece_bytes).take(MOST_TEXT)


def types_of(value: Any) -> Any:
    """Return *value* with each value's type beside it, members in their order: 1, 1.0 and True are equal."""
    if isinstance(value, dict):
        return [(name, types_of(member)) for name, member in value.items()]
    return [types_of(item) for item in value] if isinstance(value, list) else (type(value), value)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_all_is_read_as_by_pythons_own_reader(value: Any, escaped: bool, indent: int | None) -> None:
    content = json.dumps(value, ensure_ascii=escaped, indent=indent).encode()
    assert types_of(read_json(content)) == types_of(json.loads(content))
    assert read_json(content, 3) == value


@given(st.binary(max_size=40) | st.text('[]{}",:0123e+-. ntf\\u', max_size=40).map(str.encode))
def test_what_pythons_own_reader_refuses_is_refused(content: bytes) -> None:
    try:
        expected = json.loads(content.decode(), parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(JsonError, match=r"is not JSON: .* at line \d+ column \d+"):
            read_json(content)
        return
    try:
        read = read_json(content)
    except JsonError:
        assert "e" in content.decode() or "ud" in content.decode().lower(), (
            "a number above all others; half a pair"
        )
    else:
        assert read == expected


def test_a_name_that_comes_twice_has_its_last_value() -> None:
    assert read_json(b'{"a": 1, "b": 2, "a": 3}') == {"a": 3, "b": 2}


def test_whole_numbers_above_64_bits_are_floats() -> None:
    assert read_json(b"[18446744073709551616]") == [2.0**64]


def test_depth_and_texts_have_limits() -> None:
    with pytest.raises(JsonError, match="is nested too deeply"):
        read_json(b"[" * 1_000_000)
    with pytest.raises(LongTextError, match="a text that is too long"):
        read_json(json.dumps(["x" * (MOST_TEXT + 1)]).encode())


@given(VALUES)
def test_there_are_at_most_as_many_values_as_are_counted(value: Any) -> None:
    def count(inner: Any) -> int:
        items = list(inner.values()) if isinstance(inner, dict) else inner
        return 1 + sum(map(count, items)) if isinstance(inner, dict | list) else 1

    assert count(value) <= 1 + collected(json.dumps(value).encode()).most_values()


def test_other_threads_run_while_a_long_body_is_read() -> None:
    """Python's own reader lets none of them run."""
    content = json.dumps([{"source": "h1", "size_bytes": number} for number in range(200_000)]).encode()
    turns, begun, over = 0, threading.Event(), threading.Event()

    def count() -> None:
        nonlocal turns
        while not over.is_set():
            begun.set()
            turns += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        assert begun.wait(60)
        before = turns
        read = read_json(content)
        during = turns - before
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert len(read) == 200_000
    assert during > 20
