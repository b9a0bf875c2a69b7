"""A worker's attempt that is to stop, where Python ignores the exception that stops it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from engine.worker import Heartbeat, Stopped
from engine.worker_client import WorkerClient


@pytest.fixture
def cancelled() -> threading.Event:
    return threading.Event()


@pytest.fixture
def client(cancelled: threading.Event) -> Iterator[WorkerClient]:
    """A client of a server that answers reports as a controller does: to stop once the experiment is cancelled."""

    class Reports(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"go_on": not cancelled.is_set()}).encode()
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
