"""CAPTON's messages on the agents' channel: compact, for there are some for every large flow.

Bodies of frames of format `FORMAT` (network byte order)::

    Request   1 B kind, 4 B sequence, 4 B flow, 4 B destination (underlay IPv4), 8 B bytes left
    Finished  1 B kind, 4 B sequence, 4 B flow
    Grant     1 B kind, 4 B sequence, 4 B flow, 4 B answers, 8 B rate (bit/s), 2 B path stamp (0: all paths in turn)
    Stop      1 B kind, 4 B sequence, 4 B flow, 4 B answers

Each says how things are, not what has changed, so a lost message is made good by any later one, and one that comes
twice or late is known by its sequence number: both sides number what they send, and per flow act on nothing that is not
newer than what they acted on last. ``answers`` is the sequence number of the newest request that the decision knows of.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from capstan_client.errors import CapstanError
from plain.bounds import first_beyond

FORMAT: Final = 0x43
MODULUS: Final = 1 << 32
_REQUEST: Final = struct.Struct("!BII4sQ")
_FINISHED: Final = struct.Struct("!BII")
_GRANT: Final = struct.Struct("!BIIIQH")
_STOP: Final = struct.Struct("!BIII")


AdmissionTime = Annotated[float, Meta(ge=0.0001, le=60.0)]


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """How a host's flows are admitted (CAPTON, Section V).

    threshold_bytes: flows of up to so much payload leave at once, unscheduled (10 MSS). retry_s: how soon a request is
    sent again that was not answered. refresh_s: how often an answered one is, with what is left by then. fail_safe_s:
    how long the controller may leave a request unanswered before the flow goes on unscheduled. burst_s: how far ahead
    of its rate a sender may run. initial_window_packets: TCP's first window towards the overlay, for what is granted a
    rate needs no slow start.
    """

    threshold_bytes: Annotated[int, Meta(ge=0, le=1 << 40)] = 14_260
    retry_s: AdmissionTime = 0.02
    refresh_s: AdmissionTime = 0.25
    fail_safe_s: AdmissionTime = 0.1
    burst_s: AdmissionTime = 0.002
    initial_window_packets: Annotated[int, Meta(ge=1, le=10_000)] = 64

    def problem(self) -> tuple[str, str] | None:
        """Return the field and text of what cannot be; None if all is well."""
        wrong = first_beyond(self)
        if wrong is not None:
            return wrong
        if self.retry_s > self.fail_safe_s:
            return (
                "retry_s",
                f"must be at most fail_safe_s ({self.fail_safe_s:g} s): one lost message frees no flow",
            )
        return None


class AdmissionError(CapstanError, ValueError):
    """A frame that is no admission message."""


@dataclass(frozen=True, slots=True)
class Request:
    """A flow of ours has so many bytes left to send; sent again, it corrects what was said before."""

    type: ClassVar[str] = "request"
    sequence: int
    flow: int
    destination: str
    bytes_left: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A flow has nothing left, or its sender is gone."""

    type: ClassVar[str] = "finished"
    sequence: int
    flow: int


@dataclass(frozen=True, slots=True)
class Grant:
    """A flow may send at this rate until the next message; over one path, or (stamp 0) over all in turn."""

    type: ClassVar[str] = "grant"
    sequence: int
    flow: int
    answers: int
    rate_bps: int
    stamp: int = 0


@dataclass(frozen=True, slots=True)
class Stop:
    """A flow has to wait."""

    type: ClassVar[str] = "stop"
    sequence: int
    flow: int
    answers: int


AdmissionMessage = Request | Finished | Grant | Stop
KINDS: Final = (Request, Finished, Grant, Stop)


def encode_body(message: AdmissionMessage) -> bytes:
    """Return the body of a frame. Numbers that do not fit raise struct.error."""
    match message:
        case Request(sequence, flow, destination, left):
            return _REQUEST.pack(1, sequence, flow, ipaddress.IPv4Address(destination).packed, left)
        case Finished(sequence, flow):
            return _FINISHED.pack(2, sequence, flow)
        case Grant(sequence, flow, answers, rate, stamp):
            return _GRANT.pack(3, sequence, flow, answers, rate, stamp)
        case Stop(sequence, flow, answers):
            return _STOP.pack(4, sequence, flow, answers)


def decode_body(body: bytes) -> AdmissionMessage:
    """Return the message in a body. Raise AdmissionError on what is none."""
    kind, size = body[0] if body else 0, len(body)
    if kind == 1 and size == _REQUEST.size:
        _, sequence, flow, destination, remaining_bytes = _REQUEST.unpack(body)
        return Request(sequence, flow, str(ipaddress.IPv4Address(destination)), remaining_bytes)
    if kind == 2 and size == _FINISHED.size:
        return Finished(*_FINISHED.unpack(body)[1:])
    if kind == 3 and size == _GRANT.size:
        return Grant(*_GRANT.unpack(body)[1:])
    if kind == 4 and size == _STOP.size:
        return Stop(*_STOP.unpack(body)[1:])
    raise AdmissionError(f"{size} B of kind {kind} are not an admission message")


def newer(sequence: int, than: int | None) -> bool:
    """Return whether a sequence number comes after another, modulo 2^32 (RFC 1982); anything is newer than None."""
    return than is None or 0 < (sequence - than) % MODULUS < MODULUS // 2
