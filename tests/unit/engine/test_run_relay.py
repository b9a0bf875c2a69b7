"""The run that is going on, watched by way of its queue's controller: the run's own is another real one, over HTTP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from controller.api.describing import description_of
from controller.api.front.backend import HAND_OVER
from controller.live.stream import stream_head
from engine import routes_runs, run_stream
from engine.routes_runs import PASSED_ON
from engine.run_stream import RunStreams, StreamsError
from tests.free_ports import free_port
from tests.unit.api_world import WORKER_SECRET, World, api_world

BELOW = "/runs/current"


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(world: World) -> Iterator[str]:
    """Serve the API of *world*; gives its address."""
    server = make_server("127.0.0.1", 0, world.app, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "queue").mkdir()
    with api_world(tmp_path / "queue") as made:
        yield made


def running(world: World, api: str | None, secret: str = WORKER_SECRET, **body: Any) -> Any:
    """Have a worker at an experiment, whose lab's controller listens at *api*."""
    world.ask("POST", "/experiments", 201, json={"preset": "small"} | body)
    claimed = world.ask("POST", "/engine/claims", json={"worker": "w@here:1"})["claim"]
    report = {
        "attempt": claimed["attempt"],
        "worker": "w@here:1",
        "stage": "caps",
        "api": api,
        "secret": secret,
    }
    world.ask("PUT", f"/experiments/{claimed['experiment']}/progress", json=report)
    return claimed


def test_without_a_run_there_is_nothing_to_watch(world: World) -> None:
    assert world.get(BELOW) == {"experiment": None, "parent": None, "here": False}
    assert "no run is going on" in world.get(f"{BELOW}/fabric", 404)["detail"]


def test_what_the_runs_controller_answers_is_passed_on(world: World, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with api_world(tmp_path / "run") as run, served(run) as api:
        claimed = running(world, api)
        assert world.get(BELOW) == {"experiment": claimed["experiment"], "parent": None, "here": False}
        run.ask("PUT", "/scheme", json={"scheme": "letflow"})
        assert world.get("/scheme")["base"] == "ecmp"
        assert world.get(f"{BELOW}/scheme")["base"] == "letflow"
        for path in ("/fabric", "/modes", "/queues", "/faults", "/tpfs", "/capton", "/flows?limit=5"):
            assert world.get(BELOW + path) == run.get(path)
        assert world.get(f"{BELOW}/flows?limit=0", 422)["field"] == "query.limit"
        world.get(f"{BELOW}/flows/7", 404)
        world.ask("PUT", f"{BELOW}/scheme", 405, json={"scheme": "caps"})
    assert "does not answer" in world.get(f"{BELOW}/fabric", 503)["detail"]


@contextmanager
def answering(head: str, piece: bytes) -> Iterator[str]:
    """Answer each request with *head*, then *piece* again and again until the reader goes; gives the address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(65_536)
                    connection.sendall(f"HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\n\r\n".encode())
                    while piece:
                        connection.sendall(piece)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.mark.parametrize(
    ("head", "piece", "why"),
    [
        ("Content-Type: application/json", b" " * 65_536, "longer than 1 MiB"),
        ("Content-Type: application/json\r\nContent-Encoding: gzip", b"", "compressed"),
        ("Content-Type: text/html\r\nContent-Length: 0", b"", "not answer with JSON"),
        ("Content-Length: 0", b"", "not answer with JSON"),
    ],
)
def test_an_answer_without_an_end_or_a_page_is_not_passed_on(
    world: World, monkeypatch: pytest.MonkeyPatch, head: str, piece: bytes, why: str
) -> None:
    monkeypatch.setattr(routes_runs, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(routes_runs, "TIMEOUT_S", 60.0)
    with answering(head, piece) as api:
        running(world, api)
        assert why in world.get(f"{BELOW}/fabric", 503)["detail"]


def test_a_point_names_its_sweep(world: World) -> None:
    claimed = running(world, "http://127.0.0.1:9", sweep={"workload.flows.count": [5, 6]})
    assert world.get(BELOW) == {
        "experiment": claimed["experiment"],
        "parent": claimed["parent"],
        "here": False,
    }


@pytest.mark.parametrize(
    "api",
    [
        None,
        "http://192.0.2.1:80",
        "http://localhost.example:80",
        "https://127.0.0.1:1",
        "http://127.0.0.1",
        "x",
    ],
)
def test_no_other_machine_is_asked_on_a_workers_word(world: World, api: str | None) -> None:
    running(world, api)
    assert world.get(BELOW)["experiment"] is None
    world.get(f"{BELOW}/health", 404)


@pytest.mark.parametrize("secret", ["", "x", "\ud800", WORKER_SECRET[:-1]])
def test_a_port_that_no_worker_of_this_machine_named_is_not_asked(world: World, secret: str) -> None:
    """Who may operate the API may claim and report as a worker does, and so name any port of loopback."""
    with closing(socket.create_server(("127.0.0.1", 0))) as another:
        api = f"http://127.0.0.1:{another.getsockname()[1]}"
        if secret == "\ud800":
            world.ask("POST", "/experiments", 201, json={"preset": "small"})
            claimed = world.ask("POST", "/engine/claims", json={"worker": "w@here:1"})["claim"]
            report = {"attempt": claimed["attempt"], "worker": "w@here:1", "stage": "x", "api": api}
            path = f"/experiments/{claimed['experiment']}/progress"
            world.ask("PUT", path, 400, json=report | {"secret": secret})
        else:
            running(world, api, secret)
        assert world.get(BELOW)["experiment"] is None
        world.get(f"{BELOW}/fabric", 404)
        world.ask("GET", f"{BELOW}/events", 404, headers={"Accept": "text/event-stream"})
        another.settimeout(0.2)
        with pytest.raises(TimeoutError):
            another.accept()


def test_the_secret_of_workers_is_in_no_answer(world: World) -> None:
    claimed = running(world, "http://127.0.0.1:9")
    for path in ("/engine", BELOW, f"/experiments/{claimed['experiment']}/progress", "/events"):
        assert WORKER_SECRET not in str(world.get(path))


def test_the_answers_are_described_as_those_of_a_controller(world: World) -> None:
    paths = world.document["paths"]
    for path, view in PASSED_ON:
        ours = paths[f"/api/v1{BELOW}{path}".replace("<number:flow>", "{flow}")]["get"]
        own = next(
            operation["get"]
            for name, operation in paths.items()
            if "runs/current" not in name
            and operation.get("get", {}).get("summary") == description_of(view).summary
        )
        assert ours["responses"]["200"] == own["responses"]["200"]


def stream_of_the_run(world: World, said: bytes, **headers: str) -> tuple[bytes, bytes]:
    """Return what a run's controller, which answers *said*, was asked for, and all that a reader here has got."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nSet-Cookie: a=b\r\n\r\n"
    heads: list[bytes] = []

    def speak(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            heads.append(connection.recv(4096))
            connection.sendall(head + said)

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        speaker = threading.Thread(target=speak, args=(listener,), daemon=True)
        speaker.start()
        running(world, f"http://127.0.0.1:{listener.getsockname()[1]}")
        ours, reader = socket.socketpair()
        with closing(reader):
            world.client.get(
                f"/api/v1{BELOW}/events?topics=links,flows&since=a.1",
                headers={"Accept": "text/event-stream"} | headers,
                environ_overrides={HAND_OVER: lambda: ours},
            )
            reader.settimeout(30)
            received = b""
            while data := reader.recv(1 << 16):
                received += data
        speaker.join(30)
    return heads[0], received


def test_the_stream_is_copied_until_it_ends(world: World) -> None:
    """What the run's controller sends is what a reader gets, below a head of ours; with it its connection ends."""
    said = b"event: hello\ndata: {}\n\n" * 5000
    head, received = stream_of_the_run(world, said)
    assert received == stream_head() + said
    assert head.startswith(b"GET /api/v1/events?topics=links,flows&since=a.1 HTTP/1.1\r\n")
    assert b"\r\nAccept: text/event-stream\r\n" in head


def test_a_reader_that_reconnects_goes_on_where_it_was(world: World) -> None:
    """Its address is that of its first request: how far it has read is in the head, as `EventSource` sends it."""
    head, _ = stream_of_the_run(world, b"", **{"Last-Event-ID": "a-7"})
    assert head.startswith(b"GET /api/v1/events?topics=links%2Cflows&since=a-7 HTTP/1.1\r\n")


STREAM_HEAD = "Content-Type: text/event-stream"


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("Content-Type: text/html\r\nContent-Length: 0", "not answer with a stream of events"),
        ("Content-Length: 0", "not answer with a stream of events"),
        (f"{STREAM_HEAD}\r\nContent-Encoding: gzip", "not answer with a stream of events"),
        (f"{STREAM_HEAD}\r\nX-Long: {'x' * 100_000}", "does not answer"),
        ("no field", "does not answer"),
    ],
)
def test_what_is_no_stream_of_events_is_not_passed_on(world: World, head: str, why: str) -> None:
    taken: list[int] = []
    with answering(head, b"") as api:
        running(world, api)
        answer = world.ask(
            "GET",
            f"{BELOW}/events",
            503,
            headers={"Accept": "text/event-stream"},
            environ_overrides={HAND_OVER: lambda: taken.append(1)},
        )
    assert why in answer["detail"]
    assert taken == []


def test_a_head_without_an_end_is_not_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_stream, "HEAD_S", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        api = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StreamsError, match="does not answer"):
            RunStreams().add(socket.socket, api, "/api/v1/events")


@pytest.mark.slow
def test_what_the_runs_controller_refuses_is_refused_with_its_reason(world: World, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with api_world(tmp_path / "run") as run, served(run) as api:
        running(world, api)
        answer = world.ask(
            "GET",
            f"{BELOW}/events?topics=nothing",
            422,
            headers={"Accept": "text/event-stream"},
            environ_overrides={HAND_OVER: socket.socket},
        )
    assert answer["field"] == "query.topics"


def test_a_stream_that_cannot_be_had_takes_no_connection_and_no_place() -> None:
    streams = RunStreams(most=1)
    taken: list[int] = []

    def take() -> socket.socket:
        taken.append(1)
        raise AssertionError

    api = f"http://127.0.0.1:{free_port()}"
    for _ in range(3):
        with pytest.raises(StreamsError, match="does not answer"):
            streams.add(take, api, "/api/v1/events")
    assert taken == []


def test_no_more_readers_than_there_are_places() -> None:
    streams = RunStreams(most=1)
    ours, reader = socket.socketpair()
    with closing(reader), answering(STREAM_HEAD, b": here\n\n") as api:
        streams.add(lambda: ours, api, "/api/v1/events")
        with pytest.raises(StreamsError, match="1 readers watch"):
            streams.add(lambda: ours, api, "/api/v1/events")


def test_a_run_on_this_controllers_own_fabric_is_what_its_own_routes_show(world: World) -> None:
    """Without a second request: the worker's word names no address that is asked."""
    claimed = running(world, "http://127.0.0.1:9")
    report = {"attempt": claimed["attempt"], "worker": "w@here:1", "stage": "caps", "here": True}
    world.ask("PUT", f"/experiments/{claimed['experiment']}/progress", json=report)
    assert world.get(BELOW) == {"experiment": claimed["experiment"], "parent": None, "here": True}
    for path in ("/fabric", "/scheme", "/flows?limit=5", "/faults"):
        assert world.get(BELOW + path) == world.get(path)
    assert world.get(f"{BELOW}/flows?limit=0", 422)["field"] == "query.limit"
    world.get(f"{BELOW}/flows/7", 404)
