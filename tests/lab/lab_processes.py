"""Finds processes of a lab by their command lines."""

from __future__ import annotations

import os
from pathlib import Path


def pid_of(lab_id: str, words: str) -> int:
    """Return the process of a lab whose command line has these words."""
    mark = f"CAPSTAN_LAB={lab_id}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            marked = mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if marked and words in command and "setpriv" not in command:
            return int(name)
    raise AssertionError(f"no process {words!r}")
