"""A directory for one submission's marking, which is removed whatever the submission has made in it."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Yield a new directory; what cannot be removed at the end stays, and is no error of the marking's."""
    directory = Path(tempfile.mkdtemp(prefix="capstan-mark-"))
    try:
        yield directory
    finally:
        with suppress(OSError):
            remove(directory)


def remove(directory: Path) -> None:
    """Remove a directory with all that is in it, however deep: `shutil.rmtree` calls itself for each level.

    Nothing may write there any more. Raises OSError.
    """
    moved, number = secrets.token_hex(8), 0
    directory.chmod(0o700)
    while entries := list(os.scandir(directory)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            for inner in os.scandir(entry.path):
                if inner.is_dir(follow_symlinks=False):
                    os.chmod(inner.path, 0o700)  # or it cannot be moved
                    os.rename(inner.path, directory / f"{moved}-{number}")
                    number += 1
                else:
                    os.unlink(inner.path)
            os.rmdir(entry.path)
    directory.rmdir()
