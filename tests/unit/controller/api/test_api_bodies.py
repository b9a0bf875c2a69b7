"""Bodies of requests: who may send them, how large, how many together, and how slowly."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from controller.api.front.limits import MIB, Limits, LongBody, Tokens
from controller.api.front.pace import kernel_queue_bytes
from tests.unit.controller.api.served_api import (
    PATIENT,
    QUICK,
    answered,
    ended,
    get,
    next_answer,
    post,
    serving,
)
from tests.waiting import eventually


@pytest.mark.parametrize(
    ("headers", "tokens", "status"),
    [
        (("Host: evil.example",), Tokens(), 403),
        (("Origin: http://evil.example",), Tokens(), 403),
        ((), Tokens("operate", "read"), 401),
        (("Authorization: Bearer wrong",), Tokens("operate", "read"), 401),
        (("Authorization: Bearer read",), Tokens("operate", "read"), 403),
    ],
)
def test_access_is_decided_before_a_body_is_read(
    headers: tuple[str, ...], tokens: Tokens, status: int
) -> None:
    with serving(PATIENT, tokens=tokens) as served, served.connect() as connection:
        head = post("/api/v1/x", 500_000, *headers)
        if headers and headers[0].startswith("Host:"):
            head = head.replace(b"Host: 127.0.0.1\r\n", b"")
        connection.sendall(head)  # and not one byte of the body
        got, headers_of_answer, body = answered(connection)
        assert got == status
        assert headers_of_answer["Content-Type"] == "application/problem+json"
        assert headers_of_answer["Connection"] == "close"
        assert ("WWW-Authenticate" in headers_of_answer) is (status == 401)
        assert json.loads(body)["detail"]
        assert served.asked == []


@pytest.mark.slow
def test_a_refused_request_without_a_body_keeps_its_connection() -> None:
    with serving(PATIENT, tokens=Tokens("operate", "read")) as served, served.connect() as connection:
        connection.sendall(get("/api/v1/a") * 3000 + get("/api/v1/b", "Authorization: Bearer read"))
        with connection.makefile("rb") as file:
            assert [next_answer(file)[0] for _ in range(3001)] == [401] * 3000 + [200]
        assert served.asked == ["/api/v1/b"], "what is refused costs the controller nothing"


def test_a_body_has_1_mib_unless_its_route_needs_more() -> None:
    long = (LongBody("POST", "/api/v1/runs/[0-9]{1,19}", 3 * MIB),)
    with serving(PATIENT, long_bodies=long) as served:
        for path, size, status in (
            ("/api/v1/x", MIB, 200),
            ("/api/v1/x", MIB + 1, 413),
            ("/api/v1/runs/7", 3 * MIB, 200),
            ("/api/v1/runs/7", 3 * MIB + 1, 413),
            ("/api/v1/runs/7/x", 3 * MIB, 413),
        ):
            with served.connect() as connection:
                connection.sendall(post(path, size))
                if status == 200:
                    connection.sendall(bytes(size))
                got, _, body = answered(connection)
                assert got == status, (path, size)
                assert status == 200 or "MiB: send less" in json.loads(body)["detail"]


def test_bodies_have_a_limit_together() -> None:
    limits = Limits(all_body_bytes=2 * MIB, look_every_s=0.05)
    with serving(limits) as served, ExitStack() as stack:
        held = [stack.enter_context(served.connect()) for _ in range(2)]
        for connection in held:  # each keeps back its last byte
            connection.sendall(post("/api/v1/x", MIB) + bytes(MIB - 1))

        def refused() -> bool:
            with served.connect() as late:
                late.sendall(post("/api/v1/x", 5) + b"hello")
                status, _, body = answered(late)
                assert status in (200, 503), body
                assert status == 200 or "again in a few seconds" in json.loads(body)["detail"]
                return status == 503

        eventually(lambda: not any(map(kernel_queue_bytes, held)), "all is in the server's kernel")
        for _ in range(10):  # each takes a round of its loop, which reads 256 KiB of each connection
            served.health()
        assert refused(), "two bytes of 2 MiB are free"
        for connection in held:
            connection.sendall(b"x")
            assert answered(connection)[0] == 200
        assert not refused()


def test_a_body_that_comes_too_slowly_is_refused() -> None:
    with serving(QUICK) as served, served.connect() as connection:
        connection.sendall(post("/api/v1/x", 100_000) + b"x")
        status, _, body = answered(connection)
        assert status == 408
        assert "B/s" in json.loads(body)["detail"]
        assert ended(connection)
