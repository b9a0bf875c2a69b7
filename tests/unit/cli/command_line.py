"""Commands started as processes, or run in this one."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.app import main

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


@dataclass(frozen=True)
class Said:
    returncode: int
    stdout: str
    stderr: str


class InProcess:
    """The same entry as a process's, without the half second that it takes to start one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Said:
        self._monkeypatch.setattr(sys, "argv", ["capstan", *arguments])
        code: object = 0
        try:
            main()
        except SystemExit as leave:
            code = leave.code
        assert isinstance(code, int)
        return Said(code, *self._capsys.readouterr())
