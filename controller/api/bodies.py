"""What requests may carry: bodies as frozen dataclasses."""

from __future__ import annotations

import base64
import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeVar

from msgspec import Meta

from controller.api.describing import SCHEMA, UNIT
from ovsdb.port_queues import LONGEST_DELAY_US
from plain.reading import PlainError

T = TypeVar("T")
MOST_EXACT: Final = (1 << 53) - 1
"""The largest whole number that every reader of JSON takes for itself (RFC 8259, section 6)."""
MOST_RUN_MS: Final = 1e9
MOST_RECORDING: Final = 24 << 20
"""Characters of base64: several times those of a full recording (200,000 hops, some 3 MB)."""
_GZIP: Final = b"\x1f\x8b\x08"
_GZIP_IN_BASE64: Final = "^H4sI([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
PIECE: Final = 1 << 18
"""Bytes that are copied or decoded at a time: the interpreter is held for less than a millisecond."""
SLOW_MBPS: Final = (0.001, 1e6)
"""Least and most rate of a link that is made slow."""
WAIT_S: Final = (0.1, 60.0)
"""Least and most time that a request may have others take to confirm or report."""
MOST_DELAY_MS: Final = LONGEST_DELAY_US / 1000
"""That is put on top of a link's own."""


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
    timeout_s: float = within(*WAIT_S, "s", default=10.0)
    forget_flows: bool = False
    """Whether TPFS begins anew: records of flows that have ended until now are deleted."""


@dataclass(frozen=True, slots=True)
class ReportBody:
    forget: bool = False
    timeout_s: float = within(*WAIT_S, "s", default=5.0)
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
        """Return the file. Raises PlainError where it is none."""
        pieces = (self.file[begin : begin + PIECE] for begin in range(0, len(self.file), PIECE))
        try:
            if "=" in self.file[:-2]:  # at the end of a piece it would pass
                raise ValueError("padding within")
            content = b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
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
