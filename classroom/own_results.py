"""A student's results as a sandbox is given them: files that its user may read, and nothing else."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 64 << 20
MOST_FILES: Final = 4096


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    size: int
    changed_at: float


def copy_results(source: Path, target: Path) -> None:
    """Copy the newest files below *source*, at most MOST_FILES and MOST_BYTES, with their times; no links, no devices.

    The copies are readable by all: the sandbox has another user than their owner. Nothing is made where nothing is.
    """
    remaining_bytes = MOST_BYTES
    newest = sorted(_files(source), key=lambda file: file.changed_at, reverse=True)
    for file in newest[:MOST_FILES]:
        remaining_bytes -= file.size
        if remaining_bytes < 0:
            break
        copy = target / file.path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path, copy, follow_symlinks=False)
        copy.chmod(0o644)
        os.utime(copy, (file.changed_at, file.changed_at))
    for made, _, _ in os.walk(target):  # by the umask they may be the owner's alone
        os.chmod(made, 0o755)


def _files(source: Path) -> Iterator[_File]:
    for directory, _, names in os.walk(source):
        for name in names:
            path = Path(directory, name)
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                yield _File(path, status.st_size, status.st_mtime)
