"""An OpenFlow shell on loopback, and its thread kept from its work for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from controller.control_plane import ControlPlane
from controller.shell.shell import OpenFlowShell
from tests.waiting import PATIENCE_S


@contextmanager
def running_shell(plane: ControlPlane, kind: type[OpenFlowShell] = OpenFlowShell) -> Iterator[OpenFlowShell]:
    shell = kind(plane, "127.0.0.1", 0, on_event=lambda event: None)
    shell.start()
    try:
        yield shell
    finally:
        shell.stop()


@contextmanager
def held(shell: OpenFlowShell) -> Iterator[None]:
    """Within, the shell's thread reads and sends nothing: what comes meanwhile waits for it together."""
    entered, release = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        assert release.wait(PATIENCE_S)

    shell.post(hold)
    assert entered.wait(PATIENCE_S)
    try:
        yield
    finally:
        release.set()
