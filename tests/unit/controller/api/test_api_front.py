"""The API's HTTP process, a real one: what it brings to the controller and back, and whose end ends whom."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from flask import Flask, Response, request
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.api.front import process
from controller.api.front.backend import HAND_OVER, HandOverError
from controller.api.front.limits import FrontSettings, Limits
from controller.api.front.process import AGAIN_S, ROOT, HttpFront
from tests.waiting import PATIENCE_S, eventually

MOST: int = 3 << 20
"""Bytes of a request's body, at most."""
THREADS = 2
SETTINGS = FrontSettings(THREADS, limits=Limits(body_bytes=MOST))
PIECE = random.Random(1).randbytes(100_003)


@dataclass
class Served:
    front: HttpFront
    may_go_on: threading.Event = field(default_factory=threading.Event)
    busy: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def connection(self) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection("127.0.0.1", self.front.port, timeout=60)
        try:
            yield connection
        finally:
            connection.close()

    def get(self, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
        with self.connection() as connection:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as one:
        yield one


@contextmanager
def serving(
    on_restart: Callable[[int, float], None] = lambda code, after_s: None,
    on_given_up: Callable[[str], None] = lambda why: None,
) -> Iterator[Served]:
    app = Flask("front", static_folder=None)

    @app.route("/echo/<path:what>", methods=["GET", "POST", "PUT", "DELETE"])
    def echo(what: str) -> Response:
        body = request.get_data()
        digest = hashlib.sha256(body).hexdigest()
        response = Response(f"{request.method} {what} {request.query_string.decode()} {len(body)} {digest}")
        response.headers["X-Repeated"] = request.headers.get("X-Said", "")
        response.headers["X-Peer"] = request.remote_addr or ""
        response.set_cookie("one", "1")
        response.set_cookie("two", "2")
        return response

    @app.post("/unread")
    def unread() -> tuple[str, int]:
        return "not read", 409

    @app.get("/bytes/<int:size>")
    def some(size: int) -> Response:
        return Response(random.Random(size).randbytes(size), mimetype="application/octet-stream")

    @app.get("/pieces/<int:number>")
    def pieces(number: int) -> Response:
        return Response(PIECE for _ in range(number))

    @app.get("/endless")
    def endless() -> Response:
        def made() -> Iterator[bytes]:
            try:
                while True:
                    yield PIECE
            finally:
                one.closed.set()

        return Response(made())

    @app.get("/broken/<int:number>")
    def broken(number: int) -> Response:
        def made() -> Iterator[bytes]:
            yield from [PIECE] * number
            raise ValueError("in the middle")

        return Response(made())

    @app.get("/hold")
    def hold() -> str:
        one.busy.set()
        assert one.may_go_on.wait(60)
        return "held"

    @app.get("/taken")
    def taken() -> str:
        try:
            with request.environ[HAND_OVER]() as connection:
                connection.setblocking(True)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntaken")
        except HandOverError as error:
            return str(error)
        return ""

    one = Served(HttpFront(app, "127.0.0.1", 0, SETTINGS, on_restart=on_restart, on_given_up=on_given_up))
    one.front.start()
    try:
        yield one
    finally:
        one.may_go_on.set()
        one.front.stop()


TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="%?#/"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    TEXTS,
    TEXTS,
    st.one_of(st.integers(0, 300), st.integers(60_000, 70_000), st.just((1 << 20) + 1)),
)
def test_a_request_and_its_answer_are_the_same_on_both_sides(
    served: Served, method: str, word: str, said: str, size: int
) -> None:
    body = random.Random(size).randbytes(size)
    with served.connection() as connection:
        connection.request(method, f"/echo/a{word}?q={word}", body, {"X-Said": said})
        answer = connection.getresponse()
        text = answer.read().decode()
    assert text == f"{method} a{word} q={word} {size} {hashlib.sha256(body).hexdigest()}"
    assert answer.headers["X-Repeated"] == said
    assert answer.headers["X-Peer"] == "127.0.0.1"
    assert [one.partition(";")[0] for one in answer.headers.get_all("Set-Cookie", [])] == ["one=1", "two=2"]


def test_answers_of_any_size_come_whole_one_after_the_other(served: Served) -> None:
    with served.connection() as connection:
        for size in (0, 1, 65_535, 65_536, 65_537, 200_000, 5_000_000, 3):
            connection.request("GET", f"/bytes/{size}")
            assert connection.getresponse().read() == random.Random(size).randbytes(size)
            connection.request("HEAD", f"/bytes/{size}")
            answer = connection.getresponse()
            assert (answer.read(), answer.headers["Content-Length"]) == (b"", str(size))
        connection.request("GET", "/pieces/7")
        assert connection.getresponse().read() == PIECE * 7


def test_a_body_that_is_not_read_is_not_taken_for_the_next_request(served: Served) -> None:
    with served.connection() as connection:
        for size in (10, 100_000, (1 << 20) + 1):
            connection.request("POST", "/unread", b"x" * size)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (409, b"not read")
            connection.request("GET", "/bytes/3")
            assert connection.getresponse().read() == random.Random(3).randbytes(3)
    assert served.get("/unread", "POST", b"x" * (MOST + 1))[0] == 413


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"no request\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),  # it lacks Host
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * (1 << 17) + b"\r\n\r\n", b"431"),
        (b"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"POST /unread HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxx\r\n", b"400"),
    ],
)
def test_what_is_no_request_is_refused_in_words_and_its_connection_ends(
    served: Served, said: bytes, status: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", served.front.port), timeout=60) as connection:
        connection.sendall(said)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == status, answer
    assert json.loads(body)["detail"]
    assert served.get("/bytes/9")[0] == 200


def test_bodies_come_in_chunks_and_only_when_they_are_asked_for(served: Served) -> None:
    head = b"POST /echo/a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.front.port), timeout=60) as connection:
        connection.sendall(head)
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert hashlib.sha256(b"abcde").hexdigest().encode() in connection.recv(1 << 16)


def test_a_reader_that_goes_away_ends_what_is_made_for_it(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.front.port), timeout=60) as connection:
        connection.sendall(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    assert served.closed.wait(60), "the view still makes what is not read"
    for _ in range(2 * THREADS):
        assert served.get("/bytes/9")[1] == random.Random(9).randbytes(9)


def test_an_answer_that_breaks_off_is_no_whole_answer(served: Served) -> None:
    for _ in range(2 * THREADS):
        assert served.get("/broken/1")[0] == 500, "its head had not been sent"
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            served.get("/broken/100")
    assert served.get("/bytes/9")[0] == 200


def test_a_connection_is_handed_over_and_is_the_clients_own(served: Served) -> None:
    for _ in range(2 * THREADS):
        assert served.get("/taken") == (200, b"taken")
    with socket.create_connection(("127.0.0.1", served.front.port), timeout=60) as connection:
        connection.sendall(
            b"GET /bytes/20000000 HTTP/1.1\r\nHost: a\r\n\r\nGET /taken HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        answer = b""
        while b"taken" not in answer[-2000:] and b"earlier requests" not in answer[-2000:]:
            part = connection.recv(1 << 20)
            assert part, (len(answer), answer[-300:])
            answer += part
    assert served.get("/bytes/9")[0] == 200


def test_a_process_that_is_killed_is_started_anew_at_the_same_address() -> None:
    with serving() as one:
        port, first = one.front.port, one.front.pid
        assert first is not None
        assert one.get("/bytes/9")[0] == 200
        os.kill(first, signal.SIGKILL)
        eventually(lambda: one.front.pid != first, "another process")
        assert one.front.port == port
        assert one.get("/bytes/9")[1] == random.Random(9).randbytes(9)


@pytest.mark.slow
def test_who_wants_to_know_is_given_each_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "SOON_S", PATIENCE_S)  # its end comes soon, however long it takes to answer
    restarts: list[tuple[int, float]] = []
    with serving(lambda code, after_s: restarts.append((code, after_s))) as one:
        for count in (1, 2):
            eventually(lambda: one.get("/bytes/9")[0] == 200)
            assert one.front.pid is not None
            os.kill(one.front.pid, signal.SIGKILL)
            eventually(lambda count=count: len(restarts) == count)
    assert [code for code, _ in restarts] == [-signal.SIGKILL] * 2
    assert all(after_s >= AGAIN_S for _, after_s in restarts), "a process that lived for a moment only"


@pytest.mark.slow
def test_a_process_that_ends_again_and_again_is_given_up() -> None:
    reasons: list[str] = []
    with serving(on_given_up=reasons.append) as one:
        last = None
        while not reasons:
            pid = one.front.pid
            if pid != last:
                last = pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
            eventually(lambda last=last: reasons or one.front.pid != last)
    assert reasons[0].startswith("the API's HTTP process ended 5 times within ")
    assert reasons[0].endswith("the last time with -9")


def test_what_is_being_answered_when_asked_to_end_is_answered() -> None:
    with serving() as one:
        port = one.front.port
        with one.connection() as connection:
            connection.request("GET", "/hold")
            assert one.busy.wait(60)
            ending = threading.Thread(target=one.front.stop)
            ending.start()
            time.sleep(
                0.2
            )  # it has been informed by then; were it not yet, the answer would come all the more
            one.may_go_on.set()
            assert connection.getresponse().read() == b"held"
            ending.join()
        with pytest.raises(ConnectionError):
            socket.create_connection(("127.0.0.1", port), timeout=60)


def test_it_imports_nothing_from_where_the_controller_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = tmp_path / "imported"
    (tmp_path / "resource.py").write_text(f"open({str(imported)!r}, 'a').close()\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with serving() as one:
        assert one.get("/bytes/1")[0] == 200
    assert not imported.exists()


WITHOUT_DESCRIPTORS = """
import os, resource, signal, threading
from controller.api.front.limits import FrontSettings
from controller.api.front.process import HttpFront
from controller.process.control_thread import first_death, on_first_death
front = HttpFront(lambda environ, start: [], "127.0.0.1", 0, FrontSettings(1))
front.start()
died = threading.Event()
on_first_death(died.set)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
os.kill(front.pid, signal.SIGKILL)
assert died.wait(60)
print(first_death())
"""


def test_where_it_cannot_be_started_anew_the_controller_has_to_end() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=ROOT,
    )
    assert "the thread 'http-front' died of OSError(24" in ran.stdout, ran.stderr


CONTROLLER = """
import sys, time
from controller.api.front.limits import FrontSettings
from controller.api.front.limits import FrontSettings, Limits
from controller.api.front.process import HttpFront
front = HttpFront(lambda environ, start: start("200 OK", []) and [] or [b"here"], "127.0.0.1", 0, FrontSettings(1))
front.start()
print(front.port, front.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_the_controller_however_that_ends(how: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        port, pid = map(int, process.stdout.readline().split())
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"here"
    process.send_signal(how)
    process.wait()
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the HTTP process has ended")
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port), timeout=60)
