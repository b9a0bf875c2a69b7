"""Mininet's shells, which hold the namespaces of nodes, with limits: Mininet itself waits for them for ever.

A shell that dies at its start (no namespace may be made) leaves Mininet at a terminal that nothing writes to any more.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from topologies.children import end_child
from topologies.machine import namespace_advice, own_capabilities
from topologies.processes import lab_environment
from topologies.registry import LabError

SHELL_S: Final = 60.0
"""For a shell to show its prompt, and to answer its first command: some milliseconds, more on a busy machine."""
_LOOK_MS: Final = 200
_PROMPT: Final = chr(127)


class LimitedShell:
    """A base beside Mininet's `Node`: its shell bears the lab's mark, answers in time or raises LabError."""

    name: str
    shell: subprocess.Popen[bytes] | None
    stdin: Any
    stdout: Any
    master: int | None = None
    slave: int | None = None
    inToNode: dict[int, object]
    outToNode: dict[int, object]
    readbuf: str

    marked_lab: str
    """The lab's id; set before Mininet's own constructor starts the shell."""
    _prompted = False
    _patient = False
    """Once the shell has answered at its start, a command may take any time."""

    def _popen(self, cmd: Sequence[str], **params: Any) -> subprocess.Popen[bytes]:
        params["env"] = lab_environment(self.marked_lab, params.get("env"))
        process: subprocess.Popen[bytes] = super()._popen(cmd, **params)  # type: ignore[misc]
        return process

    def startShell(self, mnopts: str | None = None) -> None:
        """Start the shell, wait until it answers. Raises LabError, and leaves no process, if it does not."""
        try:
            super().startShell(mnopts)  # type: ignore[misc]
        except BaseException:
            self._discard_shell()
            raise
        self._patient = True

    def read(self, size: int = 1024) -> str:
        """Return what the shell wrote; at the start all of it up to the prompt. Raises LabError."""
        text = ""
        while True:
            if len(self.readbuf) < size:
                self._wait_for_output(text)
            more: str = super().read(size)  # type: ignore[misc]
            text += more
            if self._prompted or text.endswith(_PROMPT):
                self._prompted = True
                return text

    def waitReadable(self, timeoutms: int | None = None) -> Any:
        """Wait as Mininet's does; without a limit, raise LabError if the shell has ended."""
        if timeoutms is None and not self.readbuf:
            self._wait_for_output("")
        return super().waitReadable(timeoutms)  # type: ignore[misc]

    def _wait_for_output(self, output: str) -> None:
        """Wait until the shell has written more than *output*. Raises LabError if it ended, or is too late."""
        assert self.shell is not None
        deadline = time.monotonic() + SHELL_S
        readable = select.poll()  # Mininet's own wakes as soon as the terminal can be written to: at once
        readable.register(self.stdout, select.POLLIN)
        while True:
            ended = self.shell.poll()  # before looking: what it wrote at last is read first
            if any(event & select.POLLIN for _, event in readable.poll(0 if ended is not None else _LOOK_MS)):
                return
            last = " / ".join(line.strip() for line in output.splitlines() if line.strip())
            if ended is not None and self._patient:
                raise LabError(f"{self.name}'s shell has ended with exit code {ended}: start the lab anew")
            if ended is not None:
                raise LabError(
                    f"{self.name}'s shell ended with exit code {ended} (mnexec: {last or 'no output'}): "
                    f"{namespace_advice(own_capabilities())}"
                )
            if not self._patient and time.monotonic() > deadline:
                raise LabError(
                    f"{self.name}'s shell did not answer within {SHELL_S:g} s (mnexec: {last or 'no output'}): "
                    "`mnexec -n true` by hand shows whether namespaces can be made; ./capstan doctor says more"
                )

    def _discard_shell(self) -> None:
        """End the shell of a node that was not finished, and close its terminal."""
        if self.shell is not None:
            end_child(self.shell)
            self.shell = None
        for table in (self.inToNode, self.outToNode):
            for descriptor in [number for number, owner in table.items() if owner is self]:
                del table[descriptor]
        if self.stdin is not None:
            self.stdin.close()
        elif self.master is not None:
            os.close(self.master)
        if self.slave is not None:
            with suppress(OSError):
                os.close(self.slave)
        self.stdin = self.master = self.slave = None
