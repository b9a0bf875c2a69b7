"""The root of all exceptions of Capstan that a person is to read. Standard library only: any package may import it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class CapstanError(Exception):
    """Something that cannot be done. The text says what is wrong, where it is, and what to do about it.

    where: a file with its line, an address, a field; remedy: what to do. Both may be part of *what*, too.
    """

    def __init__(self, what: str = "", *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__((f"{where}: " if where else "") + what + (f"; {remedy}" if remedy else ""))


class NoTextError(CapstanError, ValueError):
    """A file that holds something other than text in UTF-8."""

    def __init__(self, file: Path, error: UnicodeDecodeError) -> None:
        super().__init__(
            f"byte {error.start + 1} is not UTF-8",
            where=str(file),
            remedy="give a text file in that encoding",
        )


class FieldError(CapstanError, ValueError):
    """A mistake in plain data. path: of the field, below what the reader of the error knows, as ``(0, "values")``."""

    def __init__(self, what: str, *path: str | int) -> None:
        super().__init__(what)
        self.path = path


class ControllerError(CapstanError, RuntimeError):
    """The controller refused a request, or did not answer it.

    status: of its answer, None without one; field: what was wrong in the request; problems: all that was wrong with a
    submission (field, message, line, column).
    """

    def __init__(
        self,
        what: str,
        status: int | None = None,
        field: str | None = None,
        problems: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.field = field
        self.problems = problems or []
