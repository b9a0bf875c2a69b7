"""Walks over entries that say how long they are themselves, as all of OpenFlow's lists do.

What sends the lengths may be no switch of ours. Each walk here takes at most one step per `EntryForm.least` bytes,
and ends with `MalformedError` at the first length that cannot be. os-ken's parsers do neither: an action, an
instruction or a property of length 0 keeps them in one place for ever, while they append to a list.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from controller.openflow.errors import PeerError

_LENGTH: Final = struct.Struct("!H")


class MalformedError(PeerError):
    """A message whose lengths or contents cannot be; the text says which entry, where, and what is wrong."""


@dataclass(frozen=True, slots=True)
class EntryForm:
    """How the entries of one kind of list say their length, in bytes.

    length_at: where the length is. least: of a whole entry, its head included. aligned: the length is a multiple of 8.
    padded: an entry may have any length, and the next one begins at a multiple of 8 after it. most: entries of a list.
    """

    name: str
    length_at: int
    least: int
    aligned: bool = True
    padded: bool = False
    most: int = 1 << 16


@dataclass(frozen=True, slots=True)
class Span:
    """Where an entry lies: from ``begin`` to before ``end``."""

    begin: int
    end: int


def entries(form: EntryForm, data: bytes, begin: int, end: int) -> Iterator[Span]:
    """Yield where each entry of *data* from *begin* to *end* lies. Raises MalformedError."""
    length_at, least = form.length_at, form.least
    count = 0
    while begin < end:
        count += 1
        if count > form.most:
            raise MalformedError(f"more than {form.most} entries: {form.name}")
        if end - begin < least:
            raise MalformedError(f"{form.name} at byte {begin} is cut off: {end - begin} B are left")
        (length,) = _LENGTH.unpack_from(data, begin + length_at)
        if length < least:
            raise MalformedError(
                f"{form.name} at byte {begin} says that it has {length} B, {least} B at least"
            )
        if form.aligned and length % 8:
            raise MalformedError(f"{form.name} at byte {begin} has {length} B, which is not a multiple of 8")
        following = begin + (-(-length // 8) * 8 if form.padded else length)
        if following > end:
            raise MalformedError(
                f"{form.name} at byte {begin} has {following - begin} B, {end - begin} B are left for it"
            )
        yield Span(begin, begin + length)
        begin = following


def whole_entries(form: EntryForm, data: bytes) -> tuple[int, int]:
    """Return how many whole entries *data* begins with, and where they end; what comes then `entries` may refuse."""
    count = begin = 0
    while len(data) - begin >= form.least:
        (length,) = _LENGTH.unpack_from(data, begin + form.length_at)
        following = begin + (-(-length // 8) * 8 if form.padded else length)
        if length < form.least:
            return count, len(data)
        if following > len(data):
            break
        count, begin = count + 1, following
    return count, begin


def need(structure: str, data: bytes, size: int) -> None:
    """Raise MalformedError if *data* has fewer bytes than the *size* that *structure* takes."""
    if len(data) < size:
        raise MalformedError(f"{structure} of {len(data)} B, {size} B at least")
