"""Clients that do not read, send slowly, or come in great numbers: a real HTTP process, over real sockets."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api.front.limits import MIB, Limits, Tokens
from controller.api.front.pace import Pace
from controller.api.front.places import Places, Waiting, group_of
from controller.api.front.server import MOST_REFUSED
from tests.unit.controller.api.served_api import (
    ANSWER_BYTES,
    PATIENT,
    PIECE,
    QUICK,
    Served,
    answered,
    ended,
    get,
    next_answer,
    post,
    serving,
)
from tests.waiting import PATIENCE_S, eventually

TCP_CLOSE = 7


def reset(connection: socket.socket) -> bool:
    """Return True if the server has cut the connection off; what came before need not be read for that."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == bytes((TCP_CLOSE,))


@pytest.mark.slow
def test_pipelined_requests_wait_until_the_answers_before_are_read() -> None:
    with serving(PATIENT) as served, served.lazy() as greedy:
        served.health()  # it has begun
        before = served.memory_kib()
        greedy.sendall(get("/answer") * 200)
        most = PATIENT.unsent_bytes // ANSWER_BYTES + 3  # in the kernel, here, and being made
        eventually(lambda: "/answer" in served.asked, "the first is answered")
        for _ in range(5):
            served.health()
        done = served.asked.count("/answer")
        assert done <= most + (4 << 20) // ANSWER_BYTES, "200 MB were made for a client that reads nothing"
        assert served.memory_kib() - before < 32 << 10
        with greedy.makefile("rb") as file:
            for _ in range(200):  # and a reader gets them all
                status, _, body = next_answer(file)
                assert (status, len(body)) == (200, ANSWER_BYTES)
    assert served.asked.count("/answer") == 200


@pytest.mark.slow
def test_a_reader_that_takes_nothing_is_cut_off_and_a_slow_one_is_not() -> None:
    limits = Limits(window_s=1.0, least_bytes_per_s=100_000, look_every_s=0.05)
    with serving(limits) as served, served.lazy() as idle, served.connect() as slow:
        idle.sendall(get("/answer") * 20)
        slow.sendall(get("/answer"))
        head = b""
        while b"\r\n\r\n" not in head:
            head += slow.recv(1)
        left, began = ANSWER_BYTES - len(head.partition(b"\r\n\r\n")[2]), time.monotonic()
        while left:
            left -= len(slow.recv(min(left, 20_000)))
            while (time.monotonic() - began) * 400_000 < ANSWER_BYTES - left:  # four times the least rate
                served.health()
        eventually(lambda: reset(idle), "the idle one is cut off")
        assert not reset(slow)


@pytest.mark.slow
def test_readers_that_take_nothing_do_not_fill_the_memory_together() -> None:
    limits = Limits(all_unsent_bytes=8 * MIB, look_every_s=0.05)
    with serving(limits) as served, ExitStack() as stack:
        served.health()  # it has begun
        before = served.memory_kib()
        readers = [stack.enter_context(served.lazy()) for _ in range(60)]
        for number, reader in enumerate(readers):
            reader.sendall(get(f"/large?{number}"))
        eventually(lambda: served.asked.count("/large") == 60, "all have asked")
        served.health()
        eventually(lambda: sum(map(reset, readers)) >= 50, "the first ones are cut off")
        assert not reset(readers[-1]), "and not the last"
        assert served.memory_kib() - before < 96 << 10, "with copies of those that were being made"


def test_slow_heads_do_not_shut_others_out() -> None:
    limits = Limits(connections=40, look_every_s=0.05)
    with serving(limits) as served, ExitStack() as stack:
        slow = [stack.enter_context(served.connect()) for _ in range(100)]
        for connection in slow:
            with_a_byte(connection)
        for _ in range(10):
            assert served.health() < PATIENCE_S
        eventually(lambda: served.sockets() < 40 + 10, "all that there may be, and its own")


def with_a_byte(connection: socket.socket) -> None:
    try:
        connection.sendall(b"G")
    except ConnectionError:  # it has made room for another
        return


def test_a_head_has_a_deadline_however_often_a_byte_of_it_comes() -> None:
    with serving(QUICK) as served, served.connect() as connection, served.connect() as silent:
        connection.settimeout(0.05)
        began, said = time.monotonic(), b""
        drops = itertools.chain(b"GET / HTTP/1.1\r\nX: ", itertools.repeat(120))
        while b"\r\n\r\n" not in said:
            assert time.monotonic() - began < PATIENCE_S
            with_a_byte_of(connection, next(drops))
            try:
                said += connection.recv(4096)
            except TimeoutError:
                continue
        assert said.startswith(b"HTTP/1.1 408 ")
        assert ended(silent)
        served.health()


def with_a_byte_of(connection: socket.socket, byte: int) -> None:
    connection.sendall(bytes((byte,)))


def test_a_refused_client_that_sends_on_is_cut_off() -> None:
    with serving(QUICK) as served, served.connect() as connection:
        connection.sendall(post("/api/v1/x", 100 * MIB))
        assert answered(connection)[0] == 413

        def cut_off() -> bool:
            try:
                connection.sendall(PIECE)
            except ConnectionError:
                return True
            return False

        eventually(cut_off, "it is read without end")


@pytest.mark.slow
def test_a_refusal_after_a_refused_head_is_whole_and_limits_hold_for_others() -> None:
    with serving(QUICK, tokens=Tokens("operate", "read")) as served:
        for rest, status in ((b"GET ", b"408"), (b"no request\r\n\r\n", b"400")):
            with served.connect() as connection:
                connection.sendall(get("/api/v1/x").replace(b"GET", b"HEAD"))
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += connection.recv(1)
                assert head.split()[1] == b"401"
                connection.sendall(rest)
                refused = b"".join(iter(lambda connection=connection: connection.recv(1 << 16), b""))
            head, _, body = refused.partition(b"\r\n\r\n")
            assert head.split()[1] == status
            assert json.loads(body)["status"] == int(status), "it answers no HEAD"
        with served.connect() as slow:
            slow.sendall(b"G")
            assert answered(slow)[0] == 408


def test_refused_connections_do_not_pile_up() -> None:
    with serving(replace(PATIENT, connections=5, linger_s=PATIENCE_S)) as served, ExitStack() as stack:
        readers = [stack.enter_context(served.lazy()) for _ in range(5)]
        for reader in readers:
            reader.sendall(get("/endless"))
        eventually(lambda: served.asked.count("/endless") == 5, "they have all places")
        others = [stack.enter_context(served.begin_connecting()) for _ in range(3 * MOST_REFUSED)]
        eventually(lambda: sum(map(reset, others)) == 2 * MOST_REFUSED, "what is too much is cut off")
        status, _, body = answered(others[0])
        assert (status, json.loads(body)["detail"]) == (503, "too many connections: try again later")
        assert served.sockets() < 5 + MOST_REFUSED + 20


def test_an_address_has_its_share_and_loopback_has_all() -> None:
    places = Places(most=10, most_per_address=3)
    for _ in range(3):
        assert places.has_share(group_of("192.0.2.1"))
        places.add(group_of("192.0.2.1"))
    assert not places.has_share(group_of("192.0.2.1"))
    assert not places.has_share(group_of("::ffff:192.0.2.1"))
    assert places.has_share(group_of("192.0.2.2"))
    places.remove(group_of("192.0.2.1"))
    assert places.has_share(group_of("192.0.2.1"))
    for _ in range(5):
        assert places.has_share(group_of("127.0.0.1")) is places.has_share(group_of("::1")) is True
        places.add(group_of("127.0.0.1"))
    assert group_of("2001:db8::1") == group_of("2001:db8::2") != group_of("2001:db8:0:1::1")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 100)), min_size=1, max_size=30))
def test_the_longest_waiting_of_the_address_with_most_makes_room(
    connections: list[tuple[str, float]],
) -> None:
    left = {number: Waiting(number, *connection) for number, connection in enumerate(connections)}
    places: Places[int] = Places(0, 1000, lambda: left.values())
    for address, _ in connections:
        assert places.add(address)
    while left:
        chosen = places.to_close(0.0, lambda waiter: waiter.connection in left)
        assert chosen is not None
        address, since = connections[chosen]
        count = Counter(waiter.address for waiter in left.values())
        assert count[address] == max(count.values())
        assert since == min(
            waiter.since for waiter in left.values() if count[waiter.address] == count[address]
        )
        del left[chosen]
        places.remove(address)
    places.add("a")
    assert places.to_close(1.0, lambda waiter: True) is None


def test_a_full_house_is_not_looked_at_for_each_connection_that_comes() -> None:
    """Each look costs as much as there are connections: a flood of them had the HTTP process do nothing else."""
    waiting = {number: Waiting(number, "", float(number)) for number in range(1000)}
    looks: list[float] = []

    def look() -> list[Waiting[int]]:
        looks.append(now)
        return list(waiting.values())

    places: Places[int] = Places(1000, 1000, look)
    for _ in waiting:
        places.add("")

    def come(number: int, now: float) -> None:
        assert places.add("")
        closed = places.to_close(now, lambda waiter: waiting.get(waiter.connection) is waiter)
        assert closed == number - 1000
        del waiting[closed]
        places.remove("")
        waiting[number] = Waiting(number, "", float(number))

    for number in range(1000, 11_000):
        come(number, now := number / 5000)
    assert len(looks) < 25
    for number in range(11_000, 11_010):  # few come, seconds apart, and those that wait make room as before
        come(number, now := float(number))
    assert len(looks) < 40
    waiting.clear()
    for number in range(1000):
        now = 20_000 + number / 5000
        places.add("")
        assert places.to_close(now, lambda waiter: True) is None
        places.remove("")
    assert len(looks) < 65


def test_readers_of_large_answers_that_do_not_read_keep_no_thread() -> None:
    with serving(Limits(large_answers=12, look_every_s=0.05), workers=2) as served, ExitStack() as stack:
        lazy = [stack.enter_context(served.lazy()) for _ in range(12)]
        for connection in lazy:
            connection.sendall(get("/endless"))
            assert connection.recv(1) == b"H"
        for _ in range(5):
            served.health()
        late = stack.enter_context(served.connect())
        late.sendall(get("/endless"))
        status, _, body = answered(late)
        assert status == 503
        assert "12 large answers are on their way" in json.loads(body)["detail"]
        lazy[0].close()
        eventually(lambda: begins(served), "its place is free")


def begins(served: Served) -> bool:
    with served.connect() as connection:
        connection.sendall(get("/endless"))
        return connection.recv(13).startswith(b"HTTP/1.1 200")


def test_a_reader_of_a_large_answer_keeps_a_least_rate() -> None:
    with serving(QUICK) as served, served.lazy() as lazy:
        lazy.sendall(get("/endless"))
        assert lazy.recv(1) == b"H"
        eventually(lambda: reset(lazy), "it is cut off")


@given(st.floats(0.1, 60), st.integers(1, 10**6), st.lists(st.integers(0, 10**6), min_size=1, max_size=50))
def test_only_what_is_slower_than_the_least_rate_is_too_slow(
    window_s: float, least: int, moved: list[int]
) -> None:
    pace = Pace(window_s, least / window_s)
    assert not pace.too_slow(5.0, 0)
    total, now = 0, 5.0
    for part in moved:
        total += part
        assert not pace.too_slow(now + window_s * 0.5, total), "not before a window has ended"
        now += window_s * 1.001
        slow = pace.too_slow(now, total)
        assert part == least or slow is (part < least)  # at the very rate, rounding decides


def test_what_the_http_process_refuses_is_in_metrics() -> None:
    """They were nowhere: a flood of refused requests looked like an idle API."""
    with serving(QUICK) as served:
        for _ in range(3):
            with served.connect() as connection:
                connection.sendall(b"no request\r\n\r\n")
                assert answered(connection)[0] == 400
        with served.connect() as connection:
            connection.sendall(get("/metrics", "Capstan-Refused: {}", "Connection: close"))
            status, _, body = answered(connection)
        assert (status, json.loads(body)) == (200, {"400": 3})
