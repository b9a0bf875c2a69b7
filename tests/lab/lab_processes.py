"""Finds processes of a lab by their command lines."""

from __future__ import annotations

import os
from pathlib import Path

from experiments.deployment import Deployment


def pid_of(deployment: Deployment, words: str) -> int:
    """A process of this deployment's own lab by its command line."""
    mark = f"CAPSTAN_LAB={deployment.lab.lab_id}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            marked = mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if marked and words in command and "setpriv" not in command:
            return int(name)
    raise AssertionError(f"no process {words!r}")
