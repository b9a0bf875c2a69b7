"""The API by TLS: a real HTTP process, real sockets, certificates that are replaced, a stream that is handed over."""

from __future__ import annotations

import http.client
import json
import random
import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask, Response, request

from capstan_client.errors import ControllerError
from capstan_client.http import Connection
from controller.api.front.backend import HAND_OVER
from controller.api.front.limits import FrontSettings, Limits, TlsFiles
from controller.api.front.process import HttpFront
from tests.unit.own_ca import Authority
from tests.waiting import eventually

LARGE = random.Random(1).randbytes(6 << 20)
LIMITS = Limits(connections=4, linger_s=2.0, look_every_s=0.05)


class Site:
    """Files of an API, and the port that it listens at."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory / "ca")
        self.certificate, self.key = directory / "cert.pem", directory / "key.pem"
        self.install(self.authority)
        self.port = 0
        self.taken: list[socket.socket] = []
        """The controller's ends of connections that were handed over."""

    def install(self, authority: Authority) -> None:
        for source, place in zip(
            authority.issue("api", "127.0.0.1"), (self.certificate, self.key), strict=True
        ):
            shutil.copy(source, place)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def client(self, authority: Path) -> Connection:
        return Connection(self.url, None, 60, authority)

    def open(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self.authority.certificate)
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        return context.wrap_socket(plain, server_hostname="127.0.0.1")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving(Site(tmp_path)) as site:
        yield site


@contextmanager
def serving(site: Site, limits: Limits = LIMITS) -> Iterator[Site]:
    app = Flask("tls", static_folder=None)

    @app.route("/api/v1/echo", methods=["GET", "POST"])
    def echo() -> dict[str, object]:
        return {"scheme": request.scheme, "body": len(request.get_data()), "peer": request.remote_addr}

    @app.get("/api/v1/large")
    def large() -> Response:
        return Response(LARGE, mimetype="application/octet-stream")

    @app.get("/api/v1/taken")
    def taken() -> str:
        site.taken.append(request.environ[HAND_OVER]())
        return ""

    files = TlsFiles(str(site.certificate), str(site.key))
    front = HttpFront(app, "127.0.0.1", 0, FrontSettings(2, limits=limits, tls=files))
    front.start()
    try:
        site.port = front.port
        yield site
    finally:
        for connection in site.taken:
            connection.close()
        front.stop()


def test_requests_bodies_and_large_answers_go_by_tls(site: Site) -> None:
    client = site.client(site.authority.certificate)
    assert client.get("/echo") == {"scheme": "https", "body": 0, "peer": "127.0.0.1"}
    assert client.json("POST", "/echo", body={"text": "x" * 500_000})["body"] > 500_000
    assert client.ask("GET", "/large").content == LARGE
    client.close()


def test_the_certificate_itself_may_be_the_authority(site: Site) -> None:
    client = site.client(site.certificate)
    assert client.get("/echo")["scheme"] == "https"
    client.close()


def test_another_authoritys_certificate_is_refused(site: Site, tmp_path: Path) -> None:
    client = site.client(Authority(tmp_path / "other").certificate)
    with pytest.raises(
        ControllerError, match=r"its certificate is refused: .*; give the authority that signed it"
    ):
        client.get("/echo")
    client.close()


def test_an_authority_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    with pytest.raises(ControllerError, match=r"nothing\.pem cannot be used: No such file"):
        Connection("https://127.0.0.1:1", None, 1, tmp_path / "nothing.pem")
    (tmp_path / "empty.pem").write_text("no certificate")
    with pytest.raises(ControllerError, match=r"empty\.pem cannot be used: it is not a PEM file"):
        Connection("https://127.0.0.1:1", None, 1, tmp_path / "empty.pem")


def test_a_new_certificate_is_shown_and_connections_before_go_on(site: Site, tmp_path: Path) -> None:
    before = site.client(site.authority.certificate)
    assert before.get("/echo")["scheme"] == "https"
    other = Authority(tmp_path / "next")
    site.install(other)
    after = site.client(other.certificate)
    assert after.get("/echo")["scheme"] == "https"
    assert before.get("/echo")["scheme"] == "https", "its connection stands"
    site.certificate.write_text("no certificate")
    latest = site.client(other.certificate)
    assert latest.get("/echo")["scheme"] == "https", "the files before are in use"
    for client in (before, after, latest):
        client.close()


def test_one_that_speaks_no_tls_is_let_go(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as plain:
        plain.sendall(b"GET /api/v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while part := _read(plain):
            answer += part
    assert b"HTTP/1.1" not in answer


@pytest.mark.slow
def test_a_handshake_has_the_heads_deadline(tmp_path: Path) -> None:
    with (
        serving(Site(tmp_path), replace(LIMITS, head_s=1.0)) as site,
        socket.create_connection(("127.0.0.1", site.port), timeout=60) as plain,
    ):
        assert plain.recv(100) == b"", "closed, after a second without a word"


def test_a_refusal_comes_after_the_handshake(site: Site) -> None:
    """A fifth connection finds four that have requests, and is refused: it learns why all the same."""

    def refused() -> bool:
        with suppress(OSError), ExitStack() as stack:  # those of the look before may not be gone yet
            for _ in range(4):
                client = stack.enter_context(site.open())
                client.sendall(
                    b"POST /api/v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf"
                )
            return "503" in _status(site)
        return False

    eventually(refused, "a refusal, where none of the four had to make room before its request was read")


def test_a_stream_that_is_handed_over_goes_both_ways_and_ends(site: Site) -> None:
    taken = site.taken
    with site.open() as client:
        client.sendall(b"GET /api/v1/taken HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        eventually(lambda: bool(taken), "the connection")
        theirs = taken[0]
        theirs.setblocking(True)
        theirs.settimeout(60)
        received = bytearray()
        theirs.sendall(b"first")
        assert client.recv(100) == b"first"
        client.sendall(b"word")
        assert theirs.recv(100) == b"word"
        theirs.sendall(LARGE[: 1 << 16])
        while len(received) < 1 << 16:
            received += client.recv(1 << 16)
        assert received == LARGE[: 1 << 16]
        theirs.close()
        assert client.recv(100) == b""


def test_a_reader_that_closes_ends_the_handed_over_connection(site: Site) -> None:
    taken = site.taken
    with site.open() as client:
        client.sendall(b"GET /api/v1/taken HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        eventually(lambda: bool(taken), "the connection")
        taken[0].setblocking(True)
        taken[0].settimeout(60)
    assert taken[0].recv(100) == b""


@pytest.mark.slow
def test_a_reader_that_takes_nothing_holds_its_writer_up(site: Site) -> None:
    """What a handed-over reader does not take waits with its writer, and not in the HTTP process."""
    taken = site.taken
    with site.open() as client:
        client.sendall(b"GET /api/v1/taken HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        eventually(lambda: bool(taken), "the connection")
        taken[0].settimeout(1.0)
        with pytest.raises(TimeoutError):
            taken[0].sendall(LARGE * 10)


def _status(site: Site) -> str:
    connection = http.client.HTTPSConnection(
        "127.0.0.1",
        site.port,
        timeout=60,
        context=ssl.create_default_context(cafile=site.authority.certificate),
    )
    try:
        connection.request("GET", "/api/v1/echo")
        answer = connection.getresponse()
        return f"{answer.status} {json.loads(answer.read()).get('detail', '')}"
    except OSError:
        return ""
    finally:
        connection.close()


def _read(connection: socket.socket) -> bytes:
    try:
        return connection.recv(4096)
    except ConnectionResetError:
        return b""
