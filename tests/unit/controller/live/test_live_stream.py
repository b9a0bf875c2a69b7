"""The stream of events over real sockets: order, resumption, slow readers, and what a reader costs."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from controller.api.front.limits import FrontSettings
from controller.api.front.process import HttpFront
from controller.fabric.events import LinkDown
from controller.fabric.graph import PortRef
from controller.lifecycle import AgentEvent
from controller.live import event_log
from controller.live import stream as stream_module
from controller.live.backlog import PIECE_BYTES, Backlog
from controller.live.topics import LOG_TOPICS, parse_topics, topic_of
from controller.plane.effects import ModeChanged
from tests.unit.api_world import BASE, World, api_world
from tests.waiting import eventually


@dataclass
class Reading:
    """One reader of a stream: a socket, and what came over it."""

    connection: socket.socket
    buffer: bytes = b""
    head: bytes = b""

    def next(self, timeout: float = 60.0) -> dict[str, Any]:
        """Return the next event: its topic, id (None without one) and data."""
        self.connection.settimeout(timeout)
        while True:
            text, end, rest = self.buffer.partition(b"\n\n")
            if end:
                self.buffer = rest
                fields = dict(line.split(": ", 1) for line in text.decode().splitlines() if line[:1] != ":")
                if fields:
                    return {
                        "topic": fields["event"],
                        "id": fields.get("id"),
                        "data": json.loads(fields["data"]),
                    }
            data = self.connection.recv(65536)
            if not data:
                raise EOFError
            self.buffer += data


@dataclass
class Served:
    world: World
    port: int

    @contextmanager
    def reading(self, query: str = "", method: str = "GET", **headers: str) -> Iterator[Reading]:
        lines = {"Host": "127.0.0.1", "Accept": "text/event-stream", **headers}
        text = f"{method} {BASE}/events{query} HTTP/1.1\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in lines.items()
        )
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(text.encode() + b"\r\n")
            buffer = b""
            while b"\r\n\r\n" not in buffer:
                data = connection.recv(4096)
                assert data, buffer
                buffer += data
            head, _, rest = buffer.partition(b"\r\n\r\n")
            yield Reading(connection, rest, head)


@pytest.fixture
def few_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the log of events to three; to be asked for before `served`."""
    monkeypatch.setattr(event_log, "MOST_EVENTS", 3)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with api_world(tmp_path) as world:
        front = HttpFront(world.app, "127.0.0.1", 0, FrontSettings(2))
        front.start()
        try:
            yield Served(world, front.port)
        finally:
            front.stop()


def mode(leaf: int, on: bool) -> ModeChanged:
    return ModeChanged(time.monotonic(), leaf, "on" if on else "off", "first-packet")


def test_a_reader_is_greeted_and_sent_what_happens(served: Served) -> None:
    with served.reading("?topics=modes,agents") as reading:
        assert reading.head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Content-Type: text/event-stream" in reading.head
        hello = reading.next()
        assert hello["topic"] == "hello"
        assert hello["data"]["topics"] == ["agents", "modes"]
        assert hello["data"]["resumed"] is False
        events = served.world.running.events
        events.add(mode(5, True))
        events.add(LinkDown(time.monotonic(), PortRef(1, 2), PortRef(3, 4), "no LLDP"))
        events.add(AgentEvent("h1", joined=True))
        first, second = reading.next(), reading.next()
        assert (first["topic"], first["data"]["leaf"], first["data"]["mode"]) == ("modes", "0x5", "on")
        assert (second["topic"], second["data"]["host"]) == ("agents", "h1")
        assert second["data"]["cursor"] == first["data"]["cursor"] + 2, "the link's event is of another topic"
        listed = served.world.get(f"/events?since={hello['data']['cursor']}")["events"]
        assert first["data"] == listed[0]
        assert second["data"] == listed[2]
        assert listed[1]["a"] == {"switch": "0x1", "port": 2}
        assert listed[1]["link"] == "0x1-0x3"


def test_who_comes_back_with_the_last_id_misses_nothing(served: Served) -> None:
    events = served.world.running.events
    with served.reading() as reading:
        reading.next()
        events.add(mode(1, True))
        last = reading.next()["id"]
    for on in (False, True):
        events.add(mode(1, on))
    with served.reading(**{"Last-Event-ID": last}) as reading:
        hello = reading.next()
        assert hello["data"]["resumed"] is True
        assert hello["id"] is None, "else a connection lost now would lose what follows"
        assert [reading.next()["data"]["mode"] for _ in range(2)] == ["off", "on"]
        events.add(mode(2, True))
        assert reading.next()["data"]["leaf"] == "0x2", "each once"
    with served.reading(f"?since={last}") as reading:
        assert reading.next()["data"]["resumed"] is True
        assert len([reading.next() for _ in range(3)]) == 3


@pytest.mark.parametrize("last", ["abc-1", "99999999", "-5", "x", "0" * 400])
def test_an_id_of_another_life_is_not_resumed(served: Served, last: str) -> None:
    with served.reading(**{"Last-Event-ID": last}) as reading:
        hello = reading.next()
        assert hello["data"]["resumed"] is False
        assert hello["id"] == hello["data"]["id"]


def test_events_that_are_gone_are_owned_up_to(few_events: None, served: Served) -> None:
    events = served.world.running.events
    events.add(mode(1, True))
    for on in (True, False) * 5:
        events.add(mode(1, on))
    with served.reading("?topics=modes&since=1") as reading:
        assert reading.next()["data"]["resumed"] is False
        assert [reading.next()["data"]["cursor"] for _ in range(3)] == [10, 11, 12]


@pytest.mark.slow
def test_a_reader_that_does_not_read_delays_no_other_and_loses_the_oldest(served: Served) -> None:
    stream, events = served.world.running.live.stream, served.world.running.events
    count = 12_000
    with served.reading("?topics=modes,links") as slow, served.reading("?topics=modes,links") as quick:
        slow.next()
        quick.next()
        seen: list[int] = []

        def read() -> None:
            while len(seen) < count:
                got = quick.next()
                if got["topic"] == "modes":
                    seen.append(got["data"]["cursor"])

        reader = threading.Thread(target=read)
        reader.start()
        for index in range(count):
            events.add(mode(index, True))
            stream.sample("links", {"number": index, "filling": "x" * 400})
            if index % 200 == 199:  # as a fabric would: no faster than a quick reader reads
                eventually(lambda done=index: len(seen) > done, "the quick one")  # type: ignore[misc]
        reader.join(120.0)
        assert seen == sorted(seen)
        assert len(seen) == count, "the quick one has them all"
        assert stream.counters()["dropped_events"] > 0
        stream.sample("links", {"number": count})
        got: list[dict[str, Any]] = []
        while not got or got[-1]["topic"] != "modes" or got[-1]["data"]["cursor"] < seen[-1]:
            got.append(slow.next())
        while got[-1]["topic"] != "links" or got[-1]["data"]["number"] < count:
            got.append(slow.next())
        lost = sum(one["data"]["lost"] for one in got if one["topic"] == "gap")
        reported = [one["data"]["cursor"] for one in got if one["topic"] == "modes"]
        assert lost > 0
        assert lost + len(reported) == count
        assert reported == sorted(reported)
        numbers = [one["data"]["number"] for one in got if one["topic"] == "links"]
        assert numbers[-1] == count, "the newest is never what is lost"
        assert numbers == sorted(set(numbers))


def test_a_stream_takes_no_thread_of_the_server(served: Served) -> None:
    """Two threads answer requests, and ten streams are open."""
    threads = threading.active_count()
    with contextmanager_of([served.reading("?topics=modes") for _ in range(10)]) as readings:
        for reading in readings:
            reading.next()
        assert threading.active_count() <= threads + 2, "one for each thread of the HTTP process"
        assert httpx.get(f"http://127.0.0.1:{served.port}{BASE}/health", timeout=60).status_code == 200
        served.world.running.events.add(mode(1, True))
        assert {reading.next()["topic"] for reading in readings} == {"modes"}
        assert served.world.running.live.stream.counters()["readers"] == 10
    eventually(lambda: served.world.running.live.stream.counters()["readers"] == 0, "all gone")


@contextmanager
def contextmanager_of(readings: list[Any]) -> Iterator[list[Reading]]:
    if not readings:
        yield []
        return
    with readings[0] as first, contextmanager_of(readings[1:]) as rest:
        yield [first, *rest]


def test_what_has_no_form_in_json_is_left_out_of_the_stream(served: Served) -> None:
    stream, events = served.world.running.live.stream, served.world.running.events
    circular: dict[str, Any] = {}
    circular["itself"] = circular
    with served.reading("?topics=agents,modes,links") as reading:
        reading.next()
        for bad in ("\ud800", "h\udfff"):
            events.add(AgentEvent(bad, joined=True))
            stream.sample("links", {"name": bad})
            events.add(mode(1, True))
            assert reading.next()["topic"] == "modes"
        stream.sample("links", circular)
        events.add(mode(1, False))
        assert reading.next()["data"]["mode"] == "off"
    with served.reading("?topics=agents,modes&since=0") as late:
        assert late.next()["data"]["resumed"] is True
        assert [late.next()["topic"] for _ in range(3)] == ["modes"] * 3


def test_nothing_is_written_to_a_descriptor_that_was_closed(tmp_path: Path) -> None:
    """Its number may be another file's by then: here, of all numbers that the end gave free."""
    with api_world(tmp_path) as world:
        stream = world.running.live.stream
        # the list names the descriptor, too, by which it was read
        before = [number for number in map(int, os.listdir("/proc/self/fd")) if is_open(number)]
        stream.stop()
        freed = {number for number in before if not is_open(number)}
        assert freed
        reading, writing = os.pipe2(os.O_NONBLOCK)
        freed -= {reading, writing}
        for number in freed:
            os.dup2(writing, number)
        try:
            world.running.events.add(mode(1, True))
            stream.sample("links", {})
            stream.stop()
            with pytest.raises(BlockingIOError):
                os.read(reading, 100)
        finally:
            for number in {*freed, reading, writing}:
                os.close(number)


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_events_of_the_controllers_end_reach_readers(tmp_path: Path) -> None:
    """What agents' and switches' ends make known while the controller stops goes out to readers."""
    with api_world(tmp_path) as world:
        running = world.running
        ours, theirs = socket.socketpair()
        with ours:
            running.live.stream.add(theirs, b"", frozenset({"modes"}), None)
            ours.settimeout(60)
            assert b"hello" in ours.recv(65536)
            stop_agents = running.agents.stop

            def stop() -> None:
                running.events.add(mode(7, True))
                stop_agents()

            running.agents.stop = stop  # type: ignore[method-assign]
            running.stop()
            running.events.add(mode(8, True))
            received = b"".join(iter(lambda: ours.recv(65536), b""))
        assert b'"leaf":"0x7"' in received
        assert b'"leaf":"0x8"' not in received


def test_too_many_readers_are_asked_to_come_back(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "MOST_READERS", 1)
    with served.reading() as reading:
        reading.next()
        with served.reading() as refused:
            assert refused.head.startswith(b"HTTP/1.1 503 ")
            assert b"application/problem+json" in refused.head


def test_a_head_request_is_not_a_stream(served: Served) -> None:
    with served.reading(method="HEAD") as reading:
        assert reading.head.startswith(b"HTTP/1.1 200 ")
    assert served.world.running.live.stream.counters()["readers"] == 0


def test_a_connection_with_answers_on_their_way_is_not_taken(served: Served) -> None:
    """The stream would run into what the server still has to send."""
    pipelined = f"GET {BASE}/schemes HTTP/1.1\r\nHost: localhost:8080\r\n\r\n" * 12
    stream = f"GET {BASE}/events HTTP/1.1\r\nHost: localhost:8080\r\nAccept: text/event-stream\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall((pipelined + stream).encode())
        received = b""
        while b"503 Service Unavailable" not in received and b"text/event-stream" not in received:
            data = connection.recv(65536)
            assert data
            received += data
        assert received.count(b"HTTP/1.1 200 OK") >= 12, "every answer before it is whole"


def test_with_no_server_that_can_stream_the_reader_gets_the_reason(served: Served) -> None:
    answer = served.world.client.get(f"{BASE}/events", headers={"Accept": "text/event-stream"})
    assert answer.status_code == 503
    assert "cannot stream" in answer.get_json()["detail"]


def test_browsers_and_programs_get_what_they_ask_for(served: Served) -> None:
    url = f"http://127.0.0.1:{served.port}{BASE}/events"
    for accept in ("*/*", "application/json", "application/json, text/event-stream;q=0.5"):
        answer = httpx.get(url, headers={"Accept": accept}, timeout=60)
        assert answer.headers["Content-Type"] == "application/json"
    said = httpx.get(f"{url}?topics=modes,linkz", headers={"Accept": "text/event-stream"}, timeout=60)
    assert said.status_code == 422
    assert said.json()["field"] == "query.topics"
    assert "topic 'linkz' is not known" in said.json()["detail"]


def test_topics() -> None:
    assert parse_topics("modes, links") == {"modes", "links"}
    for text in ("", " , ", "mode"):
        with pytest.raises(ValueError, match="topic"):
            parse_topics(text) if text.strip(" ,") else parse_topics(text + "topic")
    assert topic_of(mode(1, True)) == "modes"
    assert topic_of(LinkDown(0.0, PortRef(1, 1), PortRef(2, 2), "no LLDP")) in LOG_TOPICS


def test_of_samples_only_the_newest_waits_and_events_before_them() -> None:
    backlog = Backlog(frozenset({"modes", "links"}), most=2)
    assert not backlog
    backlog.sample("links", b"old ")
    for name in (b"a ", b"b ", b"c "):
        backlog.event("modes", name)
    backlog.event("agents", b"no ")
    backlog.sample("links", b"new ")
    backlog.sample("flows", b"no ")
    backlog.greet(b"hello ")
    assert backlog.take() == b'hello event: gap\ndata: {"lost":1}\n\nb c new '
    assert not backlog
    assert backlog.take() == b""
    assert (backlog.dropped_events, backlog.dropped_samples) == (1, 1)


def test_a_reader_is_given_pieces_and_a_large_frame_is_the_one_that_all_have() -> None:
    """So readers that take nothing keep what they were given last, and not all that waited, each a copy."""
    backlog = Backlog(frozenset({"modes", "links", "flows"}))
    small, large = b"x" * 1000, b"y" * (4 * PIECE_BYTES)
    for _ in range(200):
        backlog.event("modes", small)
    backlog.sample("links", large)
    backlog.sample("flows", small)
    taken = []
    while backlog:
        taken.append(backlog.take())
    assert b"".join(taken) == small * 200 + large + small
    assert [len(piece) for piece in taken[:-2]] == [65_000, 65_000, 65_000, 5_000]
    assert taken[-2] is large
