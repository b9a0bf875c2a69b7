"""A page of simulations (`capstan page`) as a process: started, asked, ended."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.waiting import eventually

OVER = ("finished", "failed", "cancelled", "interrupted")


@dataclass(frozen=True)
class Page:
    """url: its address; process: that serves it."""

    url: str
    process: subprocess.Popen[str]

    def get(self, path: str) -> tuple[int, str, bytes]:
        """Return status, media type and body."""
        try:
            with urlopen(self.url + path, timeout=60) as answer:
                return answer.status, answer.headers.get_content_type(), answer.read()
        except HTTPError as error:
            return error.code, error.headers.get_content_type(), error.read()

    def json(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return what the API answers; with a *body*: to that as a POST."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.url}/api/v1{path}", data, {"Content-Type": "application/json"})
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def simulate(self, **submission: Any) -> dict[str, Any]:
        """Submit a simulation; return the experiment once it is over."""
        number = self.json("/experiments", {"kind": "simulation", **submission})["id"]
        eventually(
            lambda: self.json(f"/experiments/{number}")["state"] in OVER, f"experiment {number} is over", 240
        )
        experiment: dict[str, Any] = self.json(f"/experiments/{number}")
        return experiment

    def hello(self) -> dict[str, Any]:
        """Return what the stream of events begins with."""
        request = Request(f"{self.url}/api/v1/events", headers={"Accept": "text/event-stream"})
        with urlopen(request, timeout=60) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    hello: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                    return hello
        raise AssertionError("the stream ended before it began")

    def end(self) -> str:
        """End it as Ctrl-C does; return what it said on standard error."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=60)[1]


@contextmanager
def served_page(
    command: Sequence[str | Path], directory: Path, environment: Mapping[str, str]
) -> Iterator[Page]:
    """Start *command* (with ``page``) in *directory*; its data is below ``data`` there."""
    arguments = [*map(str, command), "--port", "0", "--data", "data"]
    process = subprocess.Popen(
        arguments,
        cwd=directory,
        env=dict(environment),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    endpoints = directory / "data" / "endpoints.json"
    try:
        until = time.monotonic() + 120
        while not endpoints.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        assert endpoints.exists(), process.communicate(timeout=10)[1] if process.poll() else "no address"
        yield Page(json.loads(endpoints.read_text())["api"], process)
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=60)
