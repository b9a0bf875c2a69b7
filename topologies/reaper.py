"""A small process beside each lab that ends the lab when the process that started it is gone.

It is started by the lab with a pipe as standard input. Each line that comes is the pid of a process whose
network namespace belongs to the lab: it holds them open, so that they can be told from later ones. When the
pipe ends or the launcher exits, by `kill -9` too, it ends what is left of the lab.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from topologies.namespaces import Namespace
from topologies.processes import lab_environment, own_network
from topologies.registry import end_lab

SETTLE_SECONDS: Final = 0.1
"""A child that the launcher was just starting bears the lab's mark only once it has become its program."""


def start_reaper(lab_id: str) -> subprocess.Popen[bytes]:
    """Start the reaper of a lab whose launcher is this process. Write lines with pids to its stdin."""
    return subprocess.Popen(
        [sys.executable, "-m", "topologies.reaper", lab_id, str(os.getpid())],
        env=lab_environment(
            lab_id, {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _hold_namespaces(pipe: int, launcher: int) -> list[Namespace]:
    """Take in pids until the pipe ends or the launcher exits (a child of it may still hold the pipe)."""
    held: list[Namespace] = []
    rest = b""
    while True:
        readable, _, _ = select.select([pipe, launcher], [], [])
        if pipe in readable:
            data = os.read(pipe, 65536)
            if not data:
                return held
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                with suppress(OSError, ValueError):
                    held.append(Namespace(int(line)))
        elif launcher in readable:
            return held


def main() -> None:
    """`python -m topologies.reaper LAB_ID LAUNCHER_PID`"""
    lab_id, launcher_pid = sys.argv[1], int(sys.argv[2])
    home = own_network()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    held: list[Namespace] = []
    try:
        launcher = os.pidfd_open(launcher_pid)
    except OSError:
        launcher = -1
    if launcher >= 0:
        held = _hold_namespaces(sys.stdin.fileno(), launcher)
    time.sleep(SETTLE_SECONDS)
    end_lab(lab_id, home, [namespace.inode for namespace in held])


if __name__ == "__main__":
    main()
