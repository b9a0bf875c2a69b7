"""What requests may carry: bodies as frozen dataclasses, read strictly."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar

from flask import request
from msgspec import Meta

from controller.api.describing import LARGEST, MOST, SCHEMA, UNIT
from controller.api.problems import ProblemError
from ovsdb.port_queues import LONGEST_DELAY_US
from plain.field_path import Where, path_text
from plain.reading import PlainError, build, did_you_mean

T = TypeVar("T")
MOST_EXACT: Final = (1 << 53) - 1
"""The largest whole number that every reader of JSON takes for itself (RFC 8259, section 6)."""
MOST_RUN_MS: Final = 1e9
MOST_RECORDING: Final = 24 << 20
"""Characters of base64: several times those of a full recording (200,000 hops, some 3 MB)."""
_GZIP: Final = b"\x1f\x8b\x08"
_GZIP_IN_BASE64: Final = "^H4sI([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
MOST_VALUES: Final = 4_000_000
"""In a body, by the characters that separate them: 80,000 records of flows have 3 million. Python takes 64 bytes for
an empty list, which has three here."""
_COUNTED: Final = 1 << 18
"""Bytes at once: counting holds the interpreter for under a millisecond."""
_SEPARATORS: Final = (b",", b"[", b"{")
SLOW_MBPS: Final = (0.001, 1e6)
"""Least and most rate of a link that is made slow."""
MOST_DELAY_MS: Final = LONGEST_DELAY_US / 1000
"""That is put on top of a link's own."""
DEEPEST: Final = 64
"""Levels of objects and lists in a body."""


def within(
    low: float, high: float, unit: str = "", *, above: bool = False, default: Any = dataclasses.MISSING
) -> Any:
    """Return a field that is a number *low*..*high* (*above*: more than *low*); document and `body` know it."""
    floor = {"exclusiveMinimum" if above else "minimum": low}
    return field(default=default, metadata={SCHEMA: {**floor, "maximum": high}, UNIT: unit})


@dataclass(frozen=True, slots=True)
class SchemeBody:
    scheme: Annotated[Any, str | dict[str, Any]]
    """A scheme's name, or a whole scheme as an object."""
    overrides: dict[str, Any] = field(default_factory=dict)
    packet_time_us: float | None = within(0, 1e9, "us", above=True, default=None)
    timeout_s: float = 10.0
    forget_flows: bool = False
    """Whether TPFS begins anew: records of flows that have ended until now are deleted."""


@dataclass(frozen=True, slots=True)
class ReportBody:
    forget: bool = False
    timeout_s: float = 5.0
    question: int | None = within(0, MOST_EXACT, default=None)
    """Drawn by the client; a repeated request with it gets the same response, and agents are not asked again."""


@dataclass(frozen=True, slots=True)
class ImpairmentBody:
    """Shares of packets, and a delay."""

    loss: float = within(0, 1, default=0.0)
    reorder: float = within(0, 1, default=0.0)
    reorder_delay_s: float = within(0, 10, "s", default=0.0)
    duplicate: float = within(0, 1, default=0.0)
    corrupt: float = within(0, 1, default=0.0)


@dataclass(frozen=True, slots=True)
class FaultBody:
    """``target``: name of the link (``l1-s1``), switch or host. Slow links have ``rate_mbps`` (at most), ``delay_ms``
    (on top of what the link has) or both."""

    kind: Literal["link-down", "switch-down", "slow-link", "agent-down"]
    target: str
    rate_mbps: float | None = within(*SLOW_MBPS, "Mbit/s", default=None)
    delay_ms: float | None = within(0, MOST_DELAY_MS, "ms", default=None)

    @staticmethod
    def rule() -> dict[str, Any]:
        """Return which fields go together, as JSON Schema."""
        others = {"kind": {"enum": ["link-down", "switch-down", "agent-down"]}}
        nothing = {"rate_mbps": {"type": "null"}, "delay_ms": {"type": "null"}}
        slow = {"kind": {"const": "slow-link"}}
        rate = {"rate_mbps": {"type": "number"}}
        delay = {"delay_ms": {"type": "number", "exclusiveMinimum": 0}}
        return {
            "anyOf": [
                {"properties": others | nothing},
                {"properties": slow | rate, "required": ["rate_mbps"]},
                {"properties": slow | delay, "required": ["delay_ms"]},
            ]
        }


@dataclass(frozen=True, slots=True)
class RestartBody:
    """``part``: "agent h3"; ``how`` it ended: "signal 9", "exit code 1"; ``after_s``: until it was back."""

    part: str
    how: str
    after_s: float = within(0, 86400, "s")


@dataclass(frozen=True, slots=True)
class ExperimentBody:
    """``simulated``: packet by packet, not in a lab."""

    name: str
    seed: int
    spec: dict[str, Any]
    versions: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class FlowBody:
    flow: int
    source: str
    destination: str
    traffic_class: Literal["short", "long"]
    state: Literal["finished", "background", "failed"]
    error: str = ""
    size_bytes: int | None = None
    source_port: int | None = None
    destination_port: int | None = None
    planned_s: float | None = None
    started_s: float | None = None
    finished_s: float | None = None
    fct_s: float | None = None
    bytes_acked: int | None = None
    window_bytes: int | None = None
    window_s: float | None = None
    retransmissions: int | None = None
    bytes_retransmitted: int | None = None
    reordering_events: int | None = None
    duplicates_reported: int | None = None
    rtt_ms: float | None = None
    min_rtt_ms: float | None = None
    out_of_order: int | None = None
    packets: int | None = None
    repairs: int | None = None
    recovered: int | None = None
    lost: int | None = None
    reordered: int | None = None
    held: int | None = None
    release_timeouts: int | None = None
    paths: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModeBody:
    """A mode change of a leaf, ``at_s`` from the run's start."""

    at_s: float
    leaf: str
    mode: Literal["on", "off"]
    cause: str


@dataclass(frozen=True, slots=True)
class RecordingBody:
    """A window of the run, packet by packet (docs/packet-traces.md), in ms of the run. ``file``: gzip, in base64;
    ``cut``: it ends where the recording was full."""

    from_ms: Annotated[float, Meta(ge=0, le=MOST_RUN_MS)]
    for_ms: Annotated[float, Meta(ge=0, le=MOST_RUN_MS)]
    hops: Annotated[int, Meta(ge=0, le=MOST_EXACT)]
    cut: bool
    file: str = field(metadata={SCHEMA: {"pattern": _GZIP_IN_BASE64, "maxLength": MOST_RECORDING}})

    def content(self) -> bytes:
        """Return the file. Raises PlainError where it is none, or too long."""
        if len(self.file) > MOST_RECORDING:
            raise PlainError("body.recording.file", f"has more than {MOST_RECORDING >> 20} MiB of base64")
        try:
            content = base64.b64decode(self.file, validate=True)
        except ValueError:
            content = b""
        if not content.startswith(_GZIP):
            raise PlainError("body.recording.file", "is not gzip in base64: give a packet trace")
        return content


@dataclass(frozen=True, slots=True)
class RunBody:
    """``modes``: where another controller had the fabric; null: ours, which knows them. ``attempt``: of an experiment
    that was submitted. ``recording``: of a run on switches."""

    scheme: str
    repeat: int
    seed: int
    started_at: float
    measures: dict[str, Any]
    label: str | None = None
    finished_at: float | None = None
    cpu_limited: bool = False
    cpu: dict[str, Any] = field(default_factory=dict)
    flows: list[FlowBody] = field(default_factory=list)
    modes: list[ModeBody] | None = None
    attempt: int | None = None
    recording: RecordingBody | None = None


@dataclass(frozen=True, slots=True)
class EndBody:
    state: Literal["finished", "failed", "cancelled"]
    summary: dict[str, Any] | None = None
    error: str = ""


def body(kind: type[T]) -> T:
    """Return the request's body as *kind*. Raises ProblemError: 415, 413, 400, or 422 naming the field."""
    if not request.is_json:
        raise ProblemError(415, "the body must be JSON: Content-Type: application/json")
    content = request.get_data()
    _check_values(content)
    try:
        data = json.loads(content, parse_constant=_no_constant)
        _check_keepable(data, "body")
        read = build(kind, data, "body")
        _check_bounds(read, "body")
    except PlainError as error:
        raise ProblemError(422, str(error), error.where) from None
    except ValueError:
        raise ProblemError(400, "the body is not JSON") from None
    except RecursionError:
        raise ProblemError(400, "the body is nested too deeply") from None
    return read


def _check_values(content: bytes) -> None:
    """Raise ProblemError (413) for a body with more values than may be built of it."""
    if len(content) <= MOST_VALUES:
        return
    values = sum(
        content.count(separator, begin, begin + _COUNTED)  # mode switches may have a turn between two counts
        for separator in _SEPARATORS
        for begin in range(0, len(content), _COUNTED)
    )
    if values > MOST_VALUES:
        raise ProblemError(
            413, f"a body may have {MOST_VALUES:,} values, not {values:,}: send less, or in several requests"
        )


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check_keepable(value: object, where: Where, depth: int = 0) -> None:
    """Raise PlainError for a field that some database would not take, or give back, somewhere in *value*."""
    if depth > DEEPEST:
        raise PlainError(path_text(where), f"is nested more than {DEEPEST} levels deep")
    if isinstance(value, int | float) and not -MOST <= value <= MOST:  # nor is infinity
        raise PlainError(path_text(where), f"{value} is not within {-MOST}..{MOST}")
    if isinstance(value, str) and (not _is_text(value) or "\0" in value):
        raise PlainError(path_text(where), "holds a character that is not text")
    inner: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, list):
        inner = enumerate(value)
    elif isinstance(value, dict):
        for name in value:
            if not _is_plainly_keepable(name):
                _check_keepable(name, where)
        inner = value.items()
    for step, item in inner:
        if depth == DEEPEST or not _is_plainly_keepable(item):
            _check_keepable(item, (where, step), depth + 1)


def _is_plainly_keepable(value: object) -> bool:
    """Return whether *value* is a number or text of the usual kind, as nearly all of a run's 100,000 values are."""
    if type(value) is str:
        return value.isascii() and "\0" not in value
    if type(value) is int or type(value) is float:
        return -MOST <= value <= MOST
    return value is None


def _check_bounds(read: Any, where: str) -> None:
    """Raise PlainError for a number that is not `within` what its field may be."""
    for member in dataclasses.fields(read):
        value, bounds = getattr(read, member.name), member.metadata.get(SCHEMA)
        if bounds is None or value is None:
            continue
        low = bounds.get("minimum", bounds.get("exclusiveMinimum"))
        if not low <= value <= bounds["maximum"] or value == bounds.get("exclusiveMinimum"):
            least = f"above {low:g}" if "exclusiveMinimum" in bounds else f"{low:g}"
            allowed = f"must be {least}..{bounds['maximum']:g} {member.metadata[UNIT]}".rstrip()
            raise PlainError(f"{where}.{member.name}", f"{allowed}, not {value:g}")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def number(name: str, default: int | None, low: int = 0, high: int = LARGEST) -> int | None:
    """Return a query parameter as an integer low..high. Raises ProblemError (422)."""
    text = request.args.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 19 or not low <= int(text) <= high:
        raise ProblemError(422, f"query.{name}: {text!r} is not a number {low}..{high}", f"query.{name}")
    return int(text)


def text(name: str, default: str | None = None, choices: Collection[str] = ()) -> str:
    """Return a query parameter as text, one of *choices* if there are any. Raises ProblemError (422)."""
    value = optional_text(name, choices) or default
    if not value:
        raise ProblemError(422, f"query.{name}: is missing", f"query.{name}")
    return value


def optional_text(name: str, choices: Collection[str] = ()) -> str | None:
    """Return a query parameter as `text` does; None if it is left out or empty. Raises ProblemError (422)."""
    value = request.args.get(name)
    if value is None or (not value and not choices):
        return None
    if choices and value not in choices:
        hint = did_you_mean(value, choices)
        raise ProblemError(
            422, f"query.{name}: {value!r} is none of {', '.join(choices)}{hint}", f"query.{name}"
        )
    return value
