"""A worker's attempt that is to stop, where Python ignores the exception that stops it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from engine.worker import BEAT_S, Heartbeat, Stopped, Worker
from engine.worker_client import WorkerClient


@pytest.fixture
def cancelled() -> threading.Event:
    return threading.Event()


@pytest.fixture
def client(cancelled: threading.Event) -> Iterator[WorkerClient]:
    """Yield a client of a server that answers reports as a controller does: to stop once experiment 1 is cancelled."""

    class Reports(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            stops = cancelled.is_set() and self.path.startswith("/api/v1/experiments/1/")
            body = json.dumps({"go_on": not stops}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Reports) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = WorkerClient(f"http://127.0.0.1:{server.server_address[1]}")
        yield client
        client.close()
        server.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_cancellation_that_comes_as_an_attempt_ends_does_not_reach_the_next(
    client: WorkerClient, cancelled: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[Any] = [{"experiment": n, "attempt": 1, "spec": {"name": "x"}} for n in (2, 1)]
    ended: list[tuple[int, str]] = []
    leave, left = Heartbeat.__exit__, list[Heartbeat]()

    def stopped_at_the_begin_of_its_end(beat: Heartbeat, *_: object) -> None:
        left.append(beat)
        if len(left) == 1:
            cancelled.set()
            while True:
                time.sleep(0.01)
        leave(beat)

    def experiment(worker: Worker, claim: Any, beat: Heartbeat) -> dict[str, Any]:
        if claim["experiment"] == 2:
            time.sleep(3 * BEAT_S)  # the heart of the first would beat within
        return {}

    monkeypatch.setattr(client, "claim", lambda *_: claims.pop() if claims else None)
    monkeypatch.setattr(client, "end", lambda number, _, state, **__: ended.append((number, state)))
    monkeypatch.setattr(Heartbeat, "__exit__", stopped_at_the_begin_of_its_end)
    monkeypatch.setattr(Worker, "_experiment", experiment)
    assert Worker(client, "w").run() == 2
    assert ended == [(1, "interrupted"), (2, "finished")]
    assert [thread.name for thread in threading.enumerate() if thread.name == "heartbeat"] == []


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_cancellation_that_comes_within_a_destructor_stops_the_attempt(
    client: WorkerClient, cancelled: threading.Event, capsys: pytest.CaptureFixture[str]
) -> None:
    ignored = []

    class Destroyed:
        def __del__(self) -> None:
            cancelled.set()
            try:
                while True:
                    time.sleep(0.01)
            except Stopped:
                ignored.append("the first")
                raise

    def attempt() -> None:
        with Heartbeat(client, 1, 1, "worker"):
            Destroyed()
            assert ignored == ["the first"]
            while True:
                time.sleep(0.01)

    with pytest.raises(Stopped):
        attempt()
    assert "Exception ignored" not in capsys.readouterr().err
