"""`capstan serve` as a process, and short ways to ask its API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from capstan_client.http import Connection
from topologies.registry import labs

ROOT = Path(__file__).resolve().parents[2]
MARK = "CAPSTAN_TEST_SERVER"
"""Variable that the server's workers have, too."""
TINY: dict[str, Any] = {
    "name": "tiny",
    "title": "One scheme, a few flows",
    "fabric": {
        "topology": "leaf-spine",
        "leaves": 2,
        "spines": 2,
        "hosts_per_leaf": 1,
        "link": {"rate_mbps": 10, "buffer_packets": 32},
        "access": {"rate_mbps": 20, "buffer_packets": 32},
    },
    "schemes": ["ecmp", "caps"],
    "workload": {
        "flows": {
            "count": 6,
            "sizes": {"kind": "fixed", "bytes": 20000},
            "arrivals": {"kind": "poisson", "rate_per_s": 15},
            "pattern": "left-to-right",
        }
    },
    "warm_up_s": 0.2,
}


class Server:
    """One that runs. `kill` and `start` are what a crash and a new start are."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self.options = options
        self.api = "127.0.0.1:0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, at the address that it had before; returns when its API answers."""
        (self.data / "endpoints.json").unlink(missing_ok=True)
        with (self.data.parent / f"{self.data.name}.log").open("ab") as log:
            argv = [ROOT / "capstan", "serve", "--data", self.data, "--openflow", "127.0.0.1:0"]
            self.process = subprocess.Popen(
                [*argv, "--api", self.api, *self.options],
                stdout=log,
                stderr=log,
                env={**os.environ, MARK: str(self.data)},
                start_new_session=True,
            )
        self.wait((self.data / "endpoints.json").exists, 120, lambda: "no API")
        url = json.loads((self.data / "endpoints.json").read_text())["api"]
        self.api = url.removeprefix("http://")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it as *number* does; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(60)

    def ask(self, method: str, path: str, status: int = 200, json: dict[str, Any] | None = None) -> Any:
        """Send a request, and return the answer's JSON, or its text; fail if its status is not *status*."""
        with closing(Connection(f"http://{self.api}", None, 60)) as connection:
            answer = connection.send(method, path, body=json)
        assert answer.status_code == status, answer.text
        return answer.json() if "json" in answer.headers["Content-Type"] else answer.text

    def submit(self, **body: Any) -> int:
        number: int = self.ask("POST", "/experiments", 201, json=body)["id"]
        return number

    def progress(self, number: int) -> Any:
        return self.ask("GET", f"/experiments/{number}/progress")

    def state(self, number: int) -> str:
        return str(self.progress(number)["state"])

    def until(self, number: int, *states: str, timeout_s: float = 120) -> str:
        """Wait until an experiment is in one of *states*."""
        self.wait(lambda: self.state(number) in states, timeout_s, lambda: str(self.progress(number)))
        return self.state(number)

    def worker(self, number: int) -> int:
        """Return the PID of the worker that is at an experiment, once there is one."""
        self.wait(lambda: bool(self.progress(number)["workers"]), 120)
        return int(self.progress(number)["workers"][0]["name"].rpartition(":")[2])

    def wait(self, met: Callable[[], bool], timeout_s: float, what: Callable[[], str] | None = None) -> None:
        deadline = time.monotonic() + timeout_s
        while not met():
            if time.monotonic() > deadline:
                log = (self.data.parent / f"{self.data.name}.log").read_text()[-3000:]
                reported = self.ask("GET", "/experiments") if what is None else what()
                raise AssertionError(f"not in time: {reported}\n{log}")
            time.sleep(0.1)


@contextmanager
def serving(data: Path, *options: str) -> Iterator[Server]:
    """Yield a server with its files in *data*, which is stopped afterwards; fail if a lab of it is left."""
    data.mkdir(exist_ok=True)
    before = {lab.lab_id for lab in labs()}
    server = Server(data, *options)
    try:
        server.start()
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.stop()
    assert not [lab for lab in labs() if lab.lab_id not in before and _ours(lab.launcher_pid, data)]


def _ours(process: int, data: Path) -> bool:
    try:
        return f"{MARK}={data}".encode() in Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def gone(process: int) -> bool:
    """Return whether a process has ended."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False
