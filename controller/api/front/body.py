"""A request's body while it comes in and until it is answered, within what all of them may take together."""

from __future__ import annotations

import tempfile
from typing import IO, Final

from capstan_client.errors import CapstanError

IN_MEMORY: Final = 1 << 18
"""Bytes of a body that are kept in memory; what is longer waits in a file."""


class BodyError(CapstanError):
    """A body that is not taken; ``status`` says how that is answered."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class BodyRoom:
    """Bytes of all bodies that are kept at a time."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.used_bytes = 0

    def take(self, size: int) -> None:
        """Take so many bytes of the room. Raise BodyError (503) if there is not so much."""
        if self.used_bytes + size > self._most_bytes:
            raise BodyError(
                503,
                f"bodies of other requests fill the {in_units(self._most_bytes)} that are kept at a time: "
                "send this one again in a few seconds",
            )
        self.used_bytes += size

    def give_back(self, size: int) -> None:
        """Let other bodies have *size* bytes."""
        self.used_bytes -= size


class Body:
    """What has come of a body. Close it, and its room is free."""

    def __init__(self, room: BodyRoom, most_bytes: int) -> None:
        self._room = room
        self._most_bytes = most_bytes
        self._file: IO[bytes] | None = None
        self.size = 0

    def expect(self, size: int) -> None:
        """Expect so many bytes. Raise BodyError (413) if they are more than the route takes."""
        if size > self._most_bytes:
            raise BodyError(
                413,
                f"a body here may have {in_units(self._most_bytes)}: send less, or in several requests",
            )

    def add(self, data: bytes) -> None:
        """Add bytes. Raise BodyError if that is more than the route takes (413), or than there is room for
        (503).
        """
        self.expect(self.size + len(data))
        self._room.take(len(data))
        self.size += len(data)
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 open until it is answered
        self._file.write(data)

    def rewind(self) -> None:
        """Read from the beginning next."""
        if self._file is not None:
            self._file.seek(0)

    def read(self, size: int) -> bytes:
        """Return at most so many bytes of what is left, b"" at the end."""
        return b"" if self._file is None else self._file.read(size)

    def close(self) -> None:
        """Release all that it took; harmless if it did before."""
        self._room.give_back(self.size)
        self.size = 0
        if self._file is not None:
            self._file.close()
            self._file = None


def in_units(size: int) -> str:
    """Return a size with its unit: "64 MiB", "100 B"."""
    if size >= 1 << 20 and not size % (1 << 20):
        return f"{size >> 20} MiB"
    return f"{size >> 10} KiB" if size >= 1 << 10 and not size % (1 << 10) else f"{size} B"
