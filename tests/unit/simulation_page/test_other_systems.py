"""`capstan simulate` and `capstan page` where there is no Linux: with what macOS and Windows lack taken away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.simulation_page.served_page import served_page
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]
MODULES = {
    "windows": ["fcntl", "grp", "mininet", "os_ken", "pty", "pwd", "resource", "syslog", "termios", "tty"],
    "macos": ["mininet", "os_ken"],
}
GONE = {
    "windows": {
        "os": [
            "chown",
            "eventfd",
            "fork",
            "getegid",
            "geteuid",
            "getgid",
            "getpgid",
            "getuid",
            "killpg",
            "nice",
            "pidfd_open",
            "sched_getaffinity",
            "sched_setaffinity",
            "sched_setscheduler",
            "setns",
            "setpriority",
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
        "socket": ["AF_PACKET", "AF_UNIX", "SO_PEERCRED", "recv_fds", "send_fds"],
    },
    "macos": {
        "os": [
            "eventfd",
            "pidfd_open",
            "sched_getaffinity",
            "sched_setaffinity",
            "sched_setscheduler",
            "setns",
        ],
        "signal": ["pidfd_send_signal"],
        "select": ["epoll"],
        "socket": ["AF_PACKET", "SO_PEERCRED"],
    },
}
TAKE_AWAY = """\
import builtins, importlib, subprocess, sys
import asyncio, concurrent.futures, multiprocessing
import selectors, socket
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
"""
PROGRAM = (
    TAKE_AWAY
    + """\
from cli.__main__ import main
sys.argv = ["capstan", *{arguments!r}]
main()
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["windows", "macos"])
def test_a_spec_is_simulated_without_what_this_system_lacks(system: str, tmp_path: Path) -> None:
    arguments = ["simulate", "small", "--scheme", "caps", "--repeats", "1", "--results", str(tmp_path)]
    program = PROGRAM.format(modules=MODULES[system], gone=GONE[system], arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (next(tmp_path.glob("small-*")) / "result.json").is_file()


PAIRS_OF_TCP = """
def socketpair(family=socket.AF_INET, kind=socket.SOCK_STREAM, proto=0):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        return ours, listener.accept()[0]

socket.socketpair = socketpair
selectors.DefaultSelector = selectors.SelectSelector
import signal
signal.SIGBREAK = 21  # that of another signal here
"""
"""What Windows has for pairs of sockets and to wait for them, and a signal of its own."""


@pytest.mark.slow
@pytest.mark.parametrize("system", ["windows", "macos"])
def test_a_page_and_its_workers_need_nothing_that_this_system_lacks(system: str, tmp_path: Path) -> None:
    taken_away = TAKE_AWAY.format(modules=MODULES[system], gone=GONE[system])
    # in every Python that is started, the workers' and those that draw, too
    (tmp_path / "sitecustomize.py").write_text(taken_away + (PAIRS_OF_TCP if system == "windows" else ""))
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    with served_page([sys.executable, "-P", "-m", "cli", "page"], tmp_path, environment) as page:
        experiment = page.simulate(preset="small", schemes=["caps"])
        assert experiment["state"] == "finished", experiment["error"]
        number = experiment["id"]
        again = page.get(f"/api/v1/experiments/{number}/recording?scheme=caps&repeat=1")
        assert again[0] == 200, again
        long = page.json("/experiments", {"kind": "simulation", "preset": "small", "repeats": 1000})["id"]
        eventually(lambda: page.json(f"/experiments/{long}")["state"] == "running")
        page.json(f"/experiments/{long}/cancel", {})
        eventually(lambda: page.json(f"/experiments/{long}")["state"] == "cancelled")
        eventually(lambda: page.json("/engine")["running"] == [])
        assert page.hello()["resumed"] is False
        assert page.end() == ""
    assert page.process.returncode == 0
