"""A TLS context of files that may be replaced while connections stand."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

LOG: Final = logging.getLogger(__name__)


class RenewedContext:
    """The context of the files as they are now. Raises what *make* raises, a CapstanError, for the first ones.

    Connections that stand go on with what they have agreed; new ones get what the files say. Files that cannot be used
    are logged, and the context before them stays.

    owner: whose TLS it is, for the log.
    """

    def __init__(self, owner: str, files: Sequence[Path], make: Callable[[], ssl.SSLContext]) -> None:
        self._owner = owner
        self._files = tuple(files)
        self._make = make
        self._version = self._version_of_files()
        self._context = make()

    def current(self) -> ssl.SSLContext:
        """Return the context for the next connection."""
        version = self._version_of_files()
        if version != self._version:
            self._version = version
            try:
                self._context = self._make()
                LOG.info("TLS for %s: %s are read anew", self._owner, " and ".join(map(str, self._files)))
            except ValueError as error:
                LOG.error("TLS for %s goes on with the files before: %s", self._owner, error)
        return self._context

    def _version_of_files(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_version, self._files))


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
