"""`capstan simulate` where there is no Linux: with what macOS and Windows lack taken away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MODULES = {
    "windows": ["fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"],
    "macos": ["mininet"],
}
GONE = {
    "windows": {
        "os": [
            "chown",
            "fork",
            "getegid",
            "geteuid",
            "getgid",
            "getpgid",
            "getuid",
            "killpg",
            "pidfd_open",
            "sched_getaffinity",
            "sched_setaffinity",
            "sched_setscheduler",
            "setns",
            "setsid",
            "waitid",
        ],
        "signal": [
            "SIGALRM",
            "SIGCHLD",
            "SIGHUP",
            "SIGKILL",
            "SIGPIPE",
            "SIGQUIT",
            "SIGUSR1",
            "pthread_kill",
        ],
        "select": ["epoll", "poll"],
        "socket": ["AF_PACKET", "AF_UNIX"],
    },
    "macos": {
        "os": ["pidfd_open", "sched_getaffinity", "sched_setaffinity", "sched_setscheduler", "setns"],
        "signal": ["pidfd_send_signal"],
        "select": ["epoll"],
        "socket": ["AF_PACKET"],
    },
}
PROGRAM = """\
import builtins, importlib, subprocess, sys
import numpy, scipy, sklearn, matplotlib.pyplot, sqlalchemy, alembic, asyncio, concurrent.futures, multiprocessing
modules, gone = {modules!r}, {gone!r}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in modules:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

for name in modules:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())
for module, names in gone.items():
    for name in names:
        if hasattr(importlib.import_module(module), name):
            delattr(sys.modules[module], name)
from cli.__main__ import main
sys.argv = ["capstan", *{arguments!r}]
main()
"""


@pytest.mark.parametrize("system", ["windows", "macos"])
def test_a_spec_is_simulated_without_what_this_system_lacks(system: str, tmp_path: Path) -> None:
    arguments = ["simulate", "small", "--scheme", "caps", "--repeats", "1", "--results", str(tmp_path)]
    program = PROGRAM.format(modules=MODULES[system], gone=GONE[system], arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (next(tmp_path.glob("small-*")) / "result.json").is_file()
