"""The control channel's frames and the strict reading of policies."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import control
from protocol.control import Directory, Peer, SetPolicy
from protocol.frames import JSON_FORMAT, ControlError, FrameReader, encode
from protocol.policy import ClassPolicy, CodingPolicy, Policy, PolicyError, ReleasePolicy

MESSAGES = [
    control.Challenge("ab"),
    control.Hello(
        "p", "n", "h1", "10.0.1.1", "00:00:00:00:00:01", ["10.128.1.1", "fd00:ca::1:1"], 7, "0.1.0"
    ),
    Directory([Peer("h1", "10.0.1.1", ["10.128.1.1"], 5)]),
    control.Paths({"0000000000010002": (1025, 1026)}, {"short": (1025,)}),
    SetPolicy(Policy(3, "caps").to_dict()),
    control.FlowReport(
        1, [control.FlowEntry("sender", 6, "a", 1, "b", 2, "short", 3, 4, 0.0, 1.0, {"3": 4})]
    ),
    control.Report(4, forget=True),
    control.Ping(9),
]


def frame(data: object) -> bytes:
    body = json.dumps(data).encode()
    return struct.pack("!IB", len(body) + 1, JSON_FORMAT) + body


@given(st.lists(st.sampled_from(MESSAGES), max_size=6), st.lists(st.integers(1, 40), max_size=60))
def test_messages_survive_any_cut_of_the_stream(messages: list[control.Message], cuts: list[int]) -> None:
    stream = b"".join(map(encode, messages))
    reader, got, at = FrameReader(), [], 0
    for cut in [*cuts, len(stream)]:
        got += reader.feed(stream[at : at + cut])
        at += cut
    assert got == messages


def places(data: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all texts and numbers in plain data, and of all keys (with None at the end) but those of the message."""
    if isinstance(data, dict):
        keys = [(*path, key, None) for key in data if path]
        return keys + [one for key, item in data.items() for one in places(item, (*path, key))]
    if isinstance(data, list | tuple):
        return [one for index, item in enumerate(data) for one in places(item, (*path, index))]
    return [path] if isinstance(data, str | int | float) and not isinstance(data, bool) else []


def replaced(data: Any, path: tuple[Any, ...], value: object) -> Any:
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    if path[1:] == (None,):
        copy[value] = copy.pop(path[0])
    else:
        copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


@pytest.mark.parametrize("bad", ["\ud800", "h\udfff1", "a" * 100 + "\ud83d"])
def test_half_a_character_is_refused_wherever_it_is(bad: str) -> None:
    for message in [*MESSAGES, control.Counters({"packets": 1.0})]:
        plain = json.loads(encode(message)[5:])
        for path in places(plain):
            if path == ("type",):
                continue
            with pytest.raises(ControlError):
                FrameReader().feed(frame(replaced(plain, path, bad)))


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_numbers_that_json_has_no_form_for_are_refused_wherever_they_are(bad: float) -> None:
    for message in [*MESSAGES, control.Counters({"packets": 1.0})]:
        plain = json.loads(encode(message)[5:])
        for path in places(plain):
            if path[-1] is not None:
                with pytest.raises(ControlError):
                    FrameReader().feed(frame(replaced(plain, path, bad)))


@given(st.binary(min_size=5, max_size=60))
def test_arbitrary_bytes_raise_only_control_errors(data: bytes) -> None:
    try:
        FrameReader().feed(data)
    except ControlError:
        return


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], "not a message"),
        ({"type": "nonsense"}, "not a message"),
        ({"type": "ping"}, "ping: field 'id' is missing"),
        ({"type": "ping", "id": "7"}, "ping.id: expected int"),
        ({"type": "directory", "peers": [{"host": 1}]}, "directory.peers[0]"),
    ],
)
def test_malformed_messages_say_what_is_wrong(data: object, text: str) -> None:
    with pytest.raises(ControlError) as caught:
        FrameReader().feed(frame(data))
    assert text in str(caught.value)


def test_a_newer_peer_may_add_fields() -> None:
    assert FrameReader().feed(frame({"type": "ping", "id": 1, "later": True})) == [control.Ping(1)]


def test_an_endless_frame_is_refused_before_it_is_buffered() -> None:
    with pytest.raises(ControlError):
        FrameReader().feed(struct.pack("!IB", 2**31, JSON_FORMAT))


def test_proofs_differ_by_role_token_and_nonce() -> None:
    proofs = {
        control.proof(token, role, nonce)
        for token in "ab"
        for role in ("agent", "controller")
        for nonce in "xy"
    }
    assert len(proofs) == 8


def test_a_policy_comes_back_from_its_plain_data() -> None:
    policy = Policy(
        2,
        "caps",
        short=ClassPolicy(coding=CodingPolicy(max_overhead=8.0, code="ldpc"), release=ReleasePolicy(0.1)),
    )
    assert Policy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schem": "x"}, "did you mean 'scheme'?"),
        (
            {"short": {"path": {"kind": "spary"}}},
            "policy.short.path.kind: 'spary' is not known; did you mean 'spray'?",
        ),
        ({"short": {"coding": {"max_k": 0}}}, "policy.short.coding.max_k: must be 1..128"),
        ({"control": {"coding": {}}}, "never coded"),
        ({"long": {"release": {"timeout_s": -1}}}, "policy.long.release.timeout_s"),
        ({"packet_time_s": float("nan")}, "not a number"),
        ({"version": True}, "expected int"),
    ],
)
def test_policy_errors_name_the_field(change: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.from_dict({"version": 1, "scheme": "caps", **change})
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        {"type": "ping", "id": "x" * 1_000_000},
        {"type": "ping", "id": list(range(100_000))},
        {"type": "report", "id": 1, "forget": {"x" * 1_000_000: 1}},
    ],
)
def test_what_does_not_fit_is_shown_in_part(body: dict[str, object]) -> None:
    """The whole of it went to the controller's log and back to the peer: 15 MB a message."""
    text = json.dumps(body).encode()
    with pytest.raises(ControlError) as refused:
        FrameReader().feed(struct.pack("!IB", len(text) + 1, JSON_FORMAT) + text)
    assert len(str(refused.value)) < 300
