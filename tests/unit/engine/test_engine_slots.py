"""Slots of a machine's labs: only their owner can hold them."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from engine.worker import SlotError, machine_slot
from tests.waiting import PATIENCE_S

HOLD = """
import fcntl, os, pathlib, sys
for path in pathlib.Path(sys.argv[1]).iterdir():
    fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    print(path)
"""


def test_a_slot_can_be_opened_by_its_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "labs"
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)  # as another version may have left it
    with machine_slot(2, directory):
        (slot,) = directory.iterdir()
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE(slot.stat().st_mode) == 0o600
        with slot.open() as same, pytest.raises(BlockingIOError):
            fcntl.flock(same, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process is made by root")
def test_another_user_holds_no_slot() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        directory = Path(place) / "labs"
        with machine_slot(1, directory):
            pass
        done = subprocess.run(
            [sys.executable, "-c", HOLD, str(directory)],
            user=65534,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == ""
        # Not the slot's file alone: the directory, too.
        assert f"PermissionError: [Errno 13] Permission denied: '{directory}'" in done.stderr
        with machine_slot(1, directory):
            pass


def test_a_directory_that_is_not_our_own_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "labs").symlink_to(tmp_path / "theirs")
    with pytest.raises(SlotError, match="remove it"), machine_slot(1, tmp_path / "labs"):
        pass
    if os.geteuid() == 0:
        os.chown(tmp_path / "theirs", 65534, 65534)
        with pytest.raises(SlotError, match="remove it"), machine_slot(1, tmp_path / "theirs"):
            pass


def test_a_second_worker_waits_for_the_slot(tmp_path: Path) -> None:
    has_it = threading.Event()

    def second() -> None:
        with machine_slot(1, tmp_path / "labs"):
            has_it.set()

    thread = threading.Thread(target=second)
    with machine_slot(1, tmp_path / "labs"):
        thread.start()
        assert not has_it.wait(0.2)
    assert has_it.wait(PATIENCE_S)
    thread.join()
