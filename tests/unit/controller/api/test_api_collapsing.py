"""Requests for the same thing get one answer, made after all of them had been asked: over real connections."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count

import httpx
import pytest
from flask import Flask, Response, request

from controller.api.front.backend import HAND_OVER, serve
from controller.api.front.limits import FrontSettings, Limits
from controller.api.front.server import AT_WORK, HttpServer
from tests.waiting import PATIENCE_S, eventually

PIECE = b"x" * (1 << 20)


@dataclass
class Served:
    """An application whose answers say how many were made before."""

    port: int
    server: HttpServer
    may_go_on: threading.Event = field(default_factory=threading.Event)
    busy: threading.Event = field(default_factory=threading.Event)
    made: Counter[str] = field(default_factory=Counter)

    def ask(self, line: str, *headers: str, body: bytes = b"") -> Asking:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        connection.sendall("\r\n".join((line, "Host: localhost", *headers, "", "")).encode() + body)
        return Asking(connection)

    def waiting(self) -> int:
        """Count the requests that wait for their turn."""
        return len(self.server.requests)


@dataclass
class Asking:
    connection: socket.socket

    def answers(self, count: int = 1) -> list[tuple[bytes, bytes]]:
        """Return heads and bodies of so many answers, as far as they come before the connection ends."""
        found = []
        with self.connection, self.connection.makefile("rb") as file:
            for _ in range(count):
                head = b"".join(iter(file.readline, b"\r\n"))
                lengths = [
                    line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
                ]
                found.append((head, file.read(int(lengths[0].split(b":")[1])) if lengths else b""))
        return found

    def body(self) -> bytes:
        return self.answers()[0][1]


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(1) as one:
        yield one


@contextmanager
def serving(threads: int, limits: Limits | None = None) -> Iterator[Served]:
    app = Flask("collapsing", static_folder=None)
    numbers = count(1)

    @app.get("/hold")
    def hold() -> str:
        held.busy.set()
        assert held.may_go_on.wait(PATIENCE_S)
        return "held"

    @app.route("/number/<what>", methods=["GET", "POST"])
    def number(what: str) -> str:
        held.made[what] += 1
        return f"{what} {next(numbers)}"

    @app.get("/tagged")
    def tagged() -> Response:
        held.made["tagged"] += 1
        response = Response("tagged")
        response.set_etag("one")
        return response.make_conditional(request)

    @app.get("/large")
    def large() -> Response:
        held.made["large"] += 1
        return Response([PIECE] * 5, headers={"Content-Length": str(5 * len(PIECE))})

    @app.get("/taken")
    def taken() -> str:
        held.made["taken"] += 1
        with request.environ[HAND_OVER]() as connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntaken")
        return ""

    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        threading.Thread(target=serve, args=(theirs, app), daemon=True).start()
        return ours

    async def run() -> None:
        loop, until = asyncio.get_running_loop(), asyncio.Event()
        server = HttpServer(listener, connect, FrontSettings(threads, 1.0, limits or Limits()))
        begun.set_result((server, lambda: loop.call_soon_threadsafe(until.set)))
        await server.serve(until)

    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    begun: Future[tuple[HttpServer, Callable[[], object]]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    made, end = begun.result(PATIENCE_S)
    held = Served(port, made)
    try:
        yield held
    finally:
        held.may_go_on.set()
        end()
        thread.join(PATIENCE_S)


def hold(served: Served, stack: ExitStack) -> None:
    """Keep the only thread busy."""
    stack.enter_context(served.ask("GET /hold HTTP/1.1").connection)
    assert served.busy.wait(PATIENCE_S)


def test_who_waits_for_the_same_gets_one_answer(served: Served) -> None:
    with ExitStack() as stack:
        hold(served, stack)
        same = [served.ask("GET /number/a HTTP/1.1", "Accept: text/plain") for _ in range(20)]
        other = served.ask("GET /number/b HTTP/1.1", "Accept: text/plain")
        headers = served.ask("GET /number/a HTTP/1.1", "Accept: text/plain", "Authorization: Bearer x")
        posts = [served.ask("POST /number/c HTTP/1.1", "Content-Length: 2", body=b"{}") for _ in range(3)]
        bodies = [served.ask("GET /number/d HTTP/1.1", "Content-Length: 1", body=b"x") for _ in range(2)]
        eventually(lambda: served.waiting() == 27, "all requests are there")
        served.may_go_on.set()
        assert len({one.body() for one in same}) == 1
        assert other.body().startswith(b"b ")
        assert headers.body().startswith(b"a ")
        assert len({one.body() for one in posts}) == 3
        assert len({one.body() for one in bodies}) == 2
    assert served.made == {"a": 2, "b": 1, "c": 3, "d": 2}
    assert served.server.requests.coalesced == 19


def test_no_client_gets_an_answer_that_was_begun_before(served: Served) -> None:
    with ExitStack() as stack:
        hold(served, stack)
        late = [served.ask("GET /hold HTTP/1.1") for _ in range(3)]
        eventually(lambda: served.waiting() == 3, "they wait, and do not get what is being made")
        served.may_go_on.set()
        assert [one.body() for one in late] == [b"held"] * 3


def test_answers_of_every_kind_are_those_that_each_would_have_got_alone(served: Served) -> None:
    kinds = {
        "304": ("GET /tagged HTTP/1.1", 'If-None-Match: "one"'),
        "200": ("GET /tagged HTTP/1.1", 'If-None-Match: "two"'),
        "404": ("GET /nothing HTTP/1.1",),
        "ends": ("GET /number/ends HTTP/1.1", "Connection: close"),
        "old": ("GET /number/old HTTP/1.0",),
        "large": ("GET /large HTTP/1.1",),
        "taken": ("GET /taken HTTP/1.1",),
        "head": ("HEAD /number/head HTTP/1.1", "Connection: close"),
    }
    alone = {name: _alone(served, lines) for name, lines in kinds.items()}
    served.made.clear()
    with ExitStack() as stack:
        hold(served, stack)
        asked = {name: [served.ask(*lines) for _ in range(3)] for name, lines in kinds.items()}
        eventually(lambda: served.waiting() == 3 * len(kinds), "all requests are there")
        served.may_go_on.set()
        with ThreadPoolExecutor(3 * len(kinds)) as pool:
            shapes = {name: list(pool.map(_shape, found)) for name, found in asked.items()}
    assert shapes == {name: [one] * 3 for name, one in alone.items()}
    assert served.made == {"tagged": 2, "ends": 1, "old": 1, "large": 3, "taken": 3, "head": 3}


def _alone(served: Served, lines: tuple[str, ...]) -> tuple[bytes, int, bytes]:
    return _shape(served.ask(*lines))


def _shape(asking: Asking) -> tuple[bytes, int, bytes]:
    """Return an answer without its date and the number that says which it is; its head says if its connection ends."""
    head, body = asking.answers()[0]
    lines = b"\n".join(
        line for line in head.split(b"\r\n") if not line.startswith((b"Date:", b"Content-Length:"))
    )
    return lines, len(body) if len(body) > 20 else 0, body.rstrip(b"0123456789 ") if len(body) < 20 else b""


def test_one_connection_gets_its_answers_in_order(served: Served) -> None:
    with ExitStack() as stack:
        hold(served, stack)
        line = "GET /number/a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /number/b HTTP/1.1"
        asked = [served.ask(line) for _ in range(8)]
        eventually(lambda: served.waiting() == 8, "the first of each is there")
        served.may_go_on.set()
        for one in asked:
            first, second = (body for _, body in one.answers(2))
            assert first.startswith(b"a ")
            assert second.startswith(b"b ")


def test_who_left_keeps_no_other_from_an_answer(served: Served) -> None:
    with ExitStack() as stack:
        hold(served, stack)
        gone, stays = (served.ask("GET /number/a HTTP/1.1") for _ in range(2))
        eventually(lambda: served.waiting() == 2, "both are there")
        gone.connection.close()
        served.may_go_on.set()
        assert stays.body().startswith(b"a ")


def test_answers_that_wait_for_something_keep_no_thread_from_others() -> None:
    with serving(AT_WORK + 2) as served, ExitStack() as stack:
        for number in range(AT_WORK + 1):
            stack.enter_context(served.ask(f"GET /hold?{number} HTTP/1.1").connection)
        assert served.ask("GET /number/a HTTP/1.1").body().startswith(b"a "), "while those are being answered"


def test_who_asks_nothing_is_let_go_and_who_waits_is_not() -> None:
    limits = Limits(head_s=0.3, idle_s=0.3, window_s=0.3, look_every_s=0.05)
    with (
        serving(1, limits) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=60) as silent,
    ):
        asking = served.ask("GET /hold HTTP/1.1")
        assert silent.recv(1) == b"", "it is closed"
        served.may_go_on.set()
        assert asking.body() == b"held", "for all that it waited longer"


@pytest.mark.slow
def test_read_after_write_under_load(served: Served) -> None:
    """What a client has changed, the answer to its next request shows, however many others ask for the same."""
    url = f"http://127.0.0.1:{served.port}/number/w"
    served.may_go_on.set()
    ended = threading.Event()

    def press() -> None:
        with httpx.Client(trust_env=False) as session:
            while not ended.is_set():
                session.get(url, timeout=PATIENCE_S)

    with ThreadPoolExecutor(8) as pool, httpx.Client(trust_env=False) as session:
        for _ in range(8):
            pool.submit(press)
        try:
            for _ in range(100):
                written = int(session.post(url, timeout=PATIENCE_S).text.split()[1])
                assert int(session.get(url, timeout=PATIENCE_S).text.split()[1]) > written
        finally:
            ended.set()
