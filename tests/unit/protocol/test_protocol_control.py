"""The control channel's frames and the strict reading of policies."""

from __future__ import annotations

import dataclasses
import json
import struct
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import control
from protocol.control import Directory, Peer, SetPolicy
from protocol.frames import JSON_FORMAT, ControlError, FrameReader, encode
from protocol.limits import FROM_AGENT_BYTES, OTHER_BYTES
from protocol.policy import ClassPolicy, CodingPolicy, Policy, PolicyError, ReleasePolicy
from protocol.sent_again import Resent

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
    """Return the paths of all texts and numbers in plain data, and of all keys but those of the message.

    The path of a key has None at the end.
    """
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


def entry(**changes: object) -> dict[str, object]:
    plain = control.FlowEntry("sender", 6, "10.0.0.1", 1, "10.0.0.2", 2, "short", 3, 4, 0.0, 1.0)
    return dataclasses.asdict(plain) | changes


def resent(**changes: object) -> dict[str, object]:
    plain = Resent("10.0.0.1", 1, "10.0.0.2", 2, "granted", "gap", 0.0, 0.0, 0.0, 0.0, 1, 1)
    return dataclasses.asdict(plain) | changes


BEYOND_ALL_BOUNDS = {
    "bytes of a flow": {"type": "active-flows", "now_s": 1, "flows": [entry(bytes=10**400)]},
    "bytes just beyond": {"type": "active-flows", "now_s": 1, "flows": [entry(bytes=2**62 + 1)]},
    "a negative count": {"type": "active-flows", "now_s": 1, "flows": [entry(lost=-1)]},
    "a port": {"type": "active-flows", "now_s": 1, "flows": [entry(source_port=65_536)]},
    "a time": {"type": "active-flows", "now_s": 1, "flows": [entry(last_s=1e300)]},
    "a path's name": {"type": "active-flows", "now_s": 1, "flows": [entry(paths={"9" * 17: 1})]},
    "more paths than an agent counts": {
        "type": "active-flows", "now_s": 1, "flows": [entry(paths={str(one): 1 for one in range(1025)})],
    },
    "more flows than were asked for": {"type": "active-flows", "now_s": 1, "flows": [entry()] * 33},
    "an address": {"type": "flows", "id": 1, "flows": [entry(source="a" * 2000)]},
    "bytes of an episode": {"type": "sent-again", "now_s": 1, "resent": [resent(bytes=9 * 10**4299)]},
    "the version of a policy": {"type": "policy-applied", "version": 10**30},
    "a host's name": {**json.loads(encode(MESSAGES[1])[5:]), "host": "h" * 2000},
    "a pong": {"type": "pong", "id": 2**63},
}  # fmt: skip


@pytest.mark.parametrize("bad", BEYOND_ALL_BOUNDS.values(), ids=BEYOND_ALL_BOUNDS)
def test_numbers_and_texts_have_bounds(bad: object) -> None:
    """10**400 bytes of a flow ended all live flows until a restart, sums of two episodes the view of them."""
    with pytest.raises(ControlError) as caught:
        FrameReader().feed(frame(bad))
    assert len(str(caught.value)) < 300


def test_the_largest_that_is_right_passes() -> None:
    paths = {str(4095 - one): 1 << 62 for one in range(1024)}
    most = control.FlowEntry(
        "receiver", 255, "f" * 39, 65_535, "f" * 39, 65_535, "control", 1 << 62, 1 << 62, 1e9, 1e9, paths
    )
    message = control.ActiveFlows(1e9, [most] * 32, 1 << 20)
    assert FrameReader(from_agent).feed(encode(message)) == [message]
    report = control.FlowReport(1, [dataclasses.replace(most, paths_by_class={"control": paths})] * 64, True)
    assert FrameReader(from_agent).feed(encode(report)) == [report]


def from_agent(kind: str) -> int:
    return FROM_AGENT_BYTES.get(kind, OTHER_BYTES)


def test_a_frame_is_refused_as_soon_as_its_type_says_that_it_is_too_large() -> None:
    body = b'{"type":"counters","values":{"a":1}}'
    head = struct.pack("!IB", OTHER_BYTES + 2, JSON_FORMAT)
    reader = FrameReader(from_agent)
    assert reader.feed(head + body[:10]) == []
    with pytest.raises(ControlError, match=f"counters: {OTHER_BYTES + 1} B are more than {OTHER_BYTES} B"):
        reader.feed(body[10:] + b" " * 64)
    with pytest.raises(ControlError, match="whose type is not first"):
        FrameReader(from_agent).feed(head + b'{"values":{},"type":"flows"' + b" " * 64)
    with pytest.raises(ControlError, match="are not an admission message"):
        FrameReader(from_agent).feed(struct.pack("!IB", 1000, 0x43))


@pytest.mark.slow
def test_what_is_no_field_of_a_message_costs_next_to_nothing() -> None:
    """Five million empty lists took the channel's loop for 8 s, and so many dead objects for the collector."""
    body = b'{"type":"flows","id":1,"flows":[],"later":[' + b"[]," * 1_390_000 + b"[]]}"
    began = time.thread_time()
    assert FrameReader(from_agent).feed(struct.pack("!IB", len(body) + 1, JSON_FORMAT) + body) == [
        control.FlowReport(1, [])
    ]
    passed_over_s = time.thread_time() - began
    began = time.thread_time()
    json.loads(body)
    assert passed_over_s < (time.thread_time() - began) / 2


def test_a_newer_peer_may_add_fields() -> None:
    deeper = {"type": "flows", "id": 1, "flows": [entry(later=[1])]}
    assert FrameReader().feed(frame(deeper)) == [control.FlowReport(1, [control.FlowEntry(**entry())])]  # type: ignore[arg-type]
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
        # beyond 64 bits they ended every agent
        ({"short_limit_bytes": 10**20}, "policy.short_limit_bytes: must be 0..4611686018427387904 B"),
        (
            {"short": {"coding": {"redundancy": "htpc", "weight": {"none_bytes": 2**64}}}},
            "policy.short.coding.weight.none_bytes: must be 0..4611686018427387904 B",
        ),
        (
            {"priority": {"kind": "bytes-sent", "thresholds_bytes": [1, 2**64]}},
            "policy.priority.thresholds_bytes: must be at most 4611686018427387904 B",
        ),
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
