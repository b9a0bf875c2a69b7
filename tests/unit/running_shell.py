"""An OpenFlow shell, and its thread kept from its work for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from controller.shell.shell import OpenFlowShell
from tests.waiting import PATIENCE_S


@contextmanager
def running_shell(
    plane: Any, kind: type[OpenFlowShell] = OpenFlowShell, host: str = "127.0.0.1"
) -> Iterator[OpenFlowShell]:
    """Run a shell within. plane: a ControlPlane, or what has its methods."""
    shell = kind(plane, host, 0, on_event=lambda event: None)
    shell.start()
    try:
        yield shell
    finally:
        shell.stop()


@contextmanager
def held(shell: OpenFlowShell) -> Iterator[None]:
    """Hold the shell's thread within: it reads and sends nothing, and what comes meanwhile waits for it together."""
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
