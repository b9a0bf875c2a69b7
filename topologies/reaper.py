"""A small process beside each lab that ends the lab when the process that started it is gone.

It is started by the lab with a pipe as standard input. When the pipe ends or the launcher exits, by `kill -9`
too, it ends what is left of the lab. (A child of the launcher may hold the pipe open longer: so both count.)
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Final

from topologies import registry
from topologies.processes import lab_environment, own_network

SETTLE_SECONDS: Final = 0.1
"""A child that the launcher was just starting bears the lab's mark only once it has become its program."""


def start_reaper(lab_id: str) -> subprocess.Popen[bytes]:
    """Start the reaper of a lab whose launcher is this process, and return it. Close its stdin to end it."""
    return subprocess.Popen(
        # -P: nothing from our working directory, which may be another user's. -S: it needs no package, and starts in
        # two thirds of the time without what looks for them.
        [sys.executable, "-P", "-S", "-m", "topologies.reaper", lab_id, str(os.getpid())],
        env=lab_environment(
            lab_id, {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def main() -> None:
    """Run `python -m topologies.reaper LAB_ID LAUNCHER_PID`."""
    lab_id, launcher_pid = sys.argv[1], int(sys.argv[2])
    home = own_network()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    waiting = select.poll()
    waiting.register(sys.stdin.fileno(), select.POLLHUP)
    with suppress(ProcessLookupError):
        waiting.register(os.pidfd_open(launcher_pid), select.POLLIN)
        waiting.poll()
    end_what_is_left(lab_id, launcher_pid, home)


def end_what_is_left(lab_id: str, launcher_pid: int, home: int | None) -> None:
    """End what a launcher that is gone left; of a lab that it ended itself there is nothing to wait for."""
    if (registry.RUN_ROOT / lab_id).exists():
        sleep(SETTLE_SECONDS)
    registry.end_lab_of(lab_id, launcher_pid, home)


if __name__ == "__main__":
    main()
