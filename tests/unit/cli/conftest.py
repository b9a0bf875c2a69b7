"""The command line in this process, for all tests of commands."""

from __future__ import annotations

import pytest

from tests.unit.cli.command_line import InProcess


@pytest.fixture
def capstan_says(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcess:
    monkeypatch.setenv("COLUMNS", "200")
    return InProcess(monkeypatch, capsys)
