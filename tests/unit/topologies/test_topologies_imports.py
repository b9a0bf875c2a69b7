"""Python that a lab starts, as root, imports nothing from the directory in which its command was given."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from topologies.awake import cores_awake
from topologies.reaper import start_reaper


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file that is there once a module of another user's has been imported from the working directory."""
    notes = tmp_path / "imported"
    for name in ("random", "ctypes", "json"):
        module = tmp_path / f"{name}.py"
        module.write_text(f"open({str(notes)!r}, 'a').close()\nraise SystemExit(3)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return notes


def test_the_reaper(imported: Path) -> None:
    reaper = start_reaper(f"not{secrets.token_hex(4)}")
    assert reaper.stdin is not None
    reaper.stdin.close()
    code = reaper.wait(60)
    assert code == 0 or os.geteuid() != 0, "root alone has labs"
    assert not imported.exists()


def test_what_keeps_cores_awake(imported: Path) -> None:
    with cores_awake():
        pass
    assert not imported.exists()
