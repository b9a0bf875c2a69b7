"""Frames of the messages between the controller and a host agent: messages in, bytes out, and back.

A frame: 4 bytes length (network byte order, of what follows), 1 byte format, then the body. Format 0x4A ("J")
is a JSON object with a ``type``; format 0x43 ("C") one of CAPTON's compact messages (`protocol.admission`).
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

import msgspec

from capstan_client.errors import CapstanError
from plain.reading import PlainError, build
from plain.shown import shown
from protocol import admission
from protocol.control import Message
from protocol.limits import FRAME_BYTES, OTHER_BYTES

JSON_FORMAT: Final = 0x4A
_LENGTH: Final = struct.Struct("!IB")
_BY_TYPE: Final[dict[str, Any]] = {
    kind.type: kind for kind in Message.__args__ if kind not in admission.KINDS
}
_DECODERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    name: msgspec.json.Decoder(kind) for name, kind in _BY_TYPE.items()
}
_FIRST_TYPE: Final = re.compile(rb'\{\s*"type"\s*:\s*"([a-z-]{1,32})"')
"""Where both sides put the type of a message, so that it is known before the frame is whole."""
_TYPE_BYTES: Final = 64
_ADMISSION_BYTES: Final = 64
"""More than any of CAPTON's messages has."""


def _plain(value: Any) -> dict[str, Any]:
    """Return the fields of a message, or of what is in it, by name."""
    return {item.name: getattr(value, item.name) for item in fields(value)}


_TEXT: Final = json.JSONEncoder(separators=(",", ":"), default=_plain).encode
"""Without a copy of all that a message holds, which takes longer than the text."""


class _Head(msgspec.Struct):
    """Of a message, all but its type passed over."""

    type: str


_HEAD: Final = msgspec.json.Decoder(_Head)


class ControlError(CapstanError, ValueError):
    """A frame or message that is malformed: end the connection."""


def encode(message: Message) -> bytes:
    """Return one whole frame."""
    if isinstance(message, admission.KINDS):
        body = admission.encode_body(message)
        return _LENGTH.pack(len(body) + 1, admission.FORMAT) + body
    body = _TEXT({"type": message.type, **_plain(message)}).encode()
    if len(body) > FRAME_BYTES:
        raise ControlError(f"{message.type}: {len(body)} B is more than a frame may hold ({FRAME_BYTES} B)")
    return _LENGTH.pack(len(body) + 1, JSON_FORMAT) + body


def any_frame(kind: str) -> int:
    """Return the most bytes of a frame, whatever the type of its message: for what comes from the controller."""
    return FRAME_BYTES


def any_kind(kind: str) -> bool:
    """Return True: messages of all types are wanted."""
    return True


class FrameReader:
    """Bytes in, messages out; keeps what is incomplete."""

    def __init__(
        self, most_bytes: Callable[[str], int] = any_frame, wanted: Callable[[str], bool] = any_kind
    ) -> None:
        """Make a reader that holds nothing.

        most_bytes: of a frame, by the type of its message. wanted: whether messages of a type are read; others are
        passed over without being decoded.
        """
        self._buffer = bytearray()
        self._most_bytes = most_bytes
        self._wanted = wanted

    @property
    def held_bytes(self) -> int:
        """Return the bytes of the frame that is not whole yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Message]:
        """Return all wanted messages that are complete with *data*. Raises ControlError on what is malformed."""
        self._buffer += data
        messages: list[Message] = []
        while len(self._buffer) >= _LENGTH.size:
            length, form = _LENGTH.unpack_from(self._buffer)
            if not 1 <= length <= FRAME_BYTES + 1:
                raise ControlError(f"frame length {length} B is out of range")
            if form not in (JSON_FORMAT, admission.FORMAT):
                raise ControlError(f"frame format {form:#x} is not known")
            self._check_size(length - 1, form)
            if len(self._buffer) < 4 + length:
                break
            body = bytes(self._buffer[_LENGTH.size : 4 + length])
            message = _decode_json(body, self._wanted) if form == JSON_FORMAT else _decode_admission(body)
            if message is not None:
                messages.append(message)
            del self._buffer[: 4 + length]
        return messages

    def _check_size(self, size: int, form: int) -> None:
        """Raise ControlError for a frame that is larger than its message may be, as soon as its type is there."""
        if form == admission.FORMAT:
            if size > _ADMISSION_BYTES:
                raise ControlError(f"{size} B are not an admission message")
            return
        begin = self._buffer[_LENGTH.size : _LENGTH.size + min(size, _TYPE_BYTES)]
        named = _FIRST_TYPE.match(begin)
        if named is None and len(begin) < min(size, _TYPE_BYTES):
            return
        kind = "" if named is None else named[1].decode()
        most = self._most_bytes(kind)
        if size > most:
            raise ControlError(
                f"{kind or 'a message whose type is not first'}: {size} B are more than {most} B"
            )


def _decode_admission(body: bytes) -> Message:
    try:
        return admission.decode_body(body)
    except admission.AdmissionError as error:
        raise ControlError(str(error)) from None


def _decode_json(body: bytes, wanted: Callable[[str], bool]) -> Message | None:
    """Return the message, None if its type is not wanted; fields that it has not are passed over, so that a newer peer
    may add some.
    """
    try:
        named = _FIRST_TYPE.match(body)
        kind = _HEAD.decode(body).type if named is None else named[1].decode()
        if not wanted(kind):
            return None
        message: Message = _DECODERS[kind].decode(body)
    except (ValueError, KeyError, RecursionError) as error:
        raise ControlError(_reason(body, error)) from None
    return message


def _reason(body: bytes, error: Exception) -> str:
    """Return why a body is no message: in our words, with the field, where it is small enough to be read again."""
    if len(body) > OTHER_BYTES:
        return f"frame is not a message: {error}"
    try:
        data = json.loads(body)
        kind = _BY_TYPE[data.pop("type")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as other:
        return f"frame is not a message: {shown(str(other))}"
    try:
        known = {item.name for item in fields(kind)}
        build(kind, {key: value for key, value in data.items() if key in known}, kind.type)
    except PlainError as wrong:
        return str(wrong)
    return f"{kind.type}: {error}"
