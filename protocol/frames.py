"""Frames of the messages between the controller and a host agent: messages in, bytes out, and back.

A frame: 4 bytes length (network byte order, of what follows), 1 byte format, then the body. Format 0x4A ("J")
is a JSON object with a ``type``; format 0x43 ("C") one of CAPTON's compact messages (`protocol.admission`).
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, fields
from typing import Any, Final

from capstan_client.errors import CapstanError
from plain.reading import PlainError, build
from protocol import admission
from protocol.control import Message

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
JSON_FORMAT: Final = 0x4A
_LENGTH: Final = struct.Struct("!IB")
_BY_TYPE: Final[dict[str, Any]] = {
    kind.type: kind for kind in Message.__args__ if kind not in admission.KINDS
}


class ControlError(CapstanError, ValueError):
    """A frame or message that is malformed: end the connection."""


def encode(message: Message) -> bytes:
    """Return one whole frame."""
    if isinstance(message, admission.KINDS):
        body = admission.encode_body(message)
        return _LENGTH.pack(len(body) + 1, admission.FORMAT) + body
    body = json.dumps({"type": message.type, **asdict(message)}, separators=(",", ":")).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise ControlError(
            f"{message.type}: {len(body)} B is more than a frame may hold ({MAX_FRAME_BYTES} B)"
        )
    return _LENGTH.pack(len(body) + 1, JSON_FORMAT) + body


class FrameReader:
    """Bytes in, messages out; keeps what is incomplete."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Return all messages that are complete with *data*. Raises ControlError on what is malformed."""
        self._buffer += data
        messages: list[Message] = []
        while len(self._buffer) >= _LENGTH.size:
            length, form = _LENGTH.unpack_from(self._buffer)
            if not 1 <= length <= MAX_FRAME_BYTES + 1:
                raise ControlError(f"frame length {length} B is out of range")
            if form not in (JSON_FORMAT, admission.FORMAT):
                raise ControlError(f"frame format {form:#x} is not known")
            if len(self._buffer) < 4 + length:
                break
            body = bytes(self._buffer[_LENGTH.size : 4 + length])
            messages.append(_decode_json(body) if form == JSON_FORMAT else _decode_admission(body))
            del self._buffer[: 4 + length]
        return messages


def _decode_admission(body: bytes) -> Message:
    try:
        return admission.decode_body(body)
    except admission.AdmissionError as error:
        raise ControlError(str(error)) from None


def _decode_json(body: bytes) -> Message:
    try:
        data = json.loads(body)
        kind = _BY_TYPE[data.pop("type")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ControlError(f"frame is not a message: {error!r}") from None
    try:
        message: Message = build(
            kind, {key: value for key, value in data.items() if key in _names(kind)}, kind.type
        )
    except PlainError as error:
        raise ControlError(str(error)) from None
    return message


def _names(kind: Any) -> set[str]:
    """Return the fields of a message; others are dropped, so that a newer peer may add some."""
    return {item.name for item in fields(kind)}
