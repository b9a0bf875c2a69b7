"""Databases of no honest switch: what is kept of them has an end, and their numbers stay those of RFC 7047."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from controller.fabric.graph import PortRef
from controller.queues import service as queue_service
from controller.queues.ports import COLUMNS as QUEUE_COLUMNS
from controller.queues.ports import MOST_PORTS, plan
from controller.queues.service import QueueService
from ovsdb import session as limits
from ovsdb import watcher
from ovsdb.port_queues import MOST_RATE_BPS, Applied, PortLimit, PortQueues, counters_from_text
from ovsdb.session import SHARE_BYTES, Done, OvsdbError, OvsdbSession, TableRoom
from ovsdb.watcher import OvsdbWatcher
from tests.waiting import eventually

COLUMNS = {"Port": ("name",)}
DPID = 0x2B


def rows(first: int, count: int, name: Any = "eth") -> bytes:
    """Return a server's message that *count* ports have come."""
    changes = {f"row{number}": {"new": {"name": name}} for number in range(first, first + count)}
    return json.dumps({"id": None, "method": "update", "params": ["monitor", {"Port": changes}]}).encode()


def gone(first: int, count: int) -> bytes:
    changes = {f"row{number}": {"old": {}} for number in range(first, first + count)}
    return json.dumps({"id": None, "method": "update", "params": ["monitor", {"Port": changes}]}).encode()


@pytest.mark.slow
def test_rows_have_a_number_and_those_that_went_do_not_count() -> None:
    session = OvsdbSession(COLUMNS, 0.0)
    half = limits.MOST_ROWS // 2
    for _ in range(3):
        session.receive(rows(0, half), 0.0)
        session.receive(gone(0, half), 0.0)
    session.receive(rows(0, limits.MOST_ROWS), 0.0)
    with pytest.raises(OvsdbError, match="more than 65536 rows"):
        session.receive(rows(limits.MOST_ROWS, 1), 0.0)


def test_the_tables_of_a_server_have_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_KEPT_BYTES", 1 << 20)
    session = OvsdbSession(COLUMNS, 0.0)
    for _ in range(20):  # the same row again and again, of which there is one
        session.receive(rows(0, 1, "x" * (1 << 19)), 0.0)
    with pytest.raises(OvsdbError, match="take more than 1 MiB"):
        session.receive(rows(1, 1, "x" * (1 << 19)), 0.0)


def test_the_tables_of_all_servers_together_have_a_size_and_little_ones_stay() -> None:
    room = TableRoom(8 * SHARE_BYTES)
    large = OvsdbSession(COLUMNS, 0.0, room)
    large.receive(rows(0, 1, "x" * (3 * SHARE_BYTES)), 0.0)
    small = OvsdbSession(COLUMNS, 0.0, room)
    small.receive(rows(0, 1, "x" * (SHARE_BYTES // 2)), 0.0)
    other = OvsdbSession(COLUMNS, 0.0, room)
    with pytest.raises(OvsdbError, match="all switches together"):
        other.receive(rows(0, 1, "x" * SHARE_BYTES), 0.0)
    for session in (large, other, small):
        session.close()
    assert room.taken == 0
    OvsdbSession(COLUMNS, 0.0, room).receive(rows(0, 1, "x" * SHARE_BYTES), 0.0)


@pytest.mark.parametrize(
    "number", ["1" + "0" * 400, "9223372036854775808", "-9223372036854775809", "Infinity", "NaN"]
)
def test_numbers_that_the_protocol_does_not_know_end_the_session(number: str) -> None:
    session = OvsdbSession(COLUMNS, 0.0)
    with pytest.raises(OvsdbError):
        session.receive(rows(0, 1, "?").replace(b'"?"', number.encode()), 0.0)


def test_a_row_without_what_was_asked_for_ends_the_session() -> None:
    session = OvsdbSession({"Port": ("name", "qos")}, 0.0)
    with pytest.raises(OvsdbError, match="has not the columns"):
        session.receive(rows(0, 1), 0.0)


@pytest.mark.parametrize(
    "text",
    ["[1, 1, Infinity, 0, null, 0]", "[" * 100_000, "[1, 1, 1e400, 0, null, 0]", "[1, 1, -1, 0, null, 0]"],
)
def test_what_no_writer_has_applied_is_nothing(text: str) -> None:
    assert Applied.from_text(text) is None


def test_a_rate_that_no_port_has_is_none() -> None:
    assert Applied.from_text(f'[1, 1, {MOST_RATE_BPS + 1}, "", null, 0]') is None
    assert Applied.from_text(f'[1, 1, {MOST_RATE_BPS}, "", null, 0]') is not None


@pytest.mark.parametrize(
    "text", ['{"eth1": [[Infinity, 0, 0, 0, 0]]}', '{"eth1":' * 100_000, '{"eth1": [[0, 0, 0, 0, -1]]}']
)
def test_counters_that_no_queue_has_are_none(text: str) -> None:
    assert counters_from_text(text) == {}


def tables(ports: int, again: int = 1, rate: Any = 10**9) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the tables of a switch with so many ports, whose bridge names each of them *again* times."""
    made: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in QUEUE_COLUMNS}
    for number in range(1, ports + 1):
        made["Interface"][f"i{number}"] = {"name": "", "type": "", "ofport": number, "link_speed": rate}
        made["Port"][f"p{number}"] = {"name": f"eth{number}", "interfaces": f"i{number}", "qos": ()}
    bridge = {"name": "br", "datapath_type": "system", "datapath_id": f"{DPID:016x}"}
    made["Bridge"]["b"] = {**bridge, "ports": tuple(made["Port"]) * again}
    return made


def test_a_bridge_has_each_port_once_and_no_more_than_openflow_knows() -> None:
    few = plan(tables(3, again=1000), DPID, PortQueues())
    assert few is not None
    assert [port.number for port in few.ports] == [1, 2, 3]
    many = plan(tables(MOST_PORTS + 5), DPID, PortQueues())
    assert many is not None
    assert len(many.ports) == MOST_PORTS


def test_a_link_faster_than_any_has_no_known_rate() -> None:
    found = plan(tables(1, rate=2**62), DPID, PortQueues(2))
    assert found is not None
    assert "does not know its rate" in found.ports[0].problem
    assert found.ports[0].rate_bps == 0


@contextmanager
def watched_row(table: str, fields: dict[str, Any]) -> Iterator[QueueService]:
    """Yield a service that watches a switch whose database has one row; columns that *fields* lacks are empty."""
    row = {key: ["set", []] for key in QUEUE_COLUMNS[table]} | fields
    listener = socket.create_server(("127.0.0.1", 0))
    service = QueueService(listener.getsockname()[1])
    service.start()
    try:
        service.set_queues(PortQueues(2))
        service.switch_up(DPID, "127.0.0.1")
        with listener, listener.accept()[0] as server:
            result = {table: {"r": {"new": row}}}
            server.sendall(json.dumps({"id": "monitor", "error": None, "result": result}).encode())
            yield service
    finally:
        service.stop()


def test_an_answer_of_a_million_digits_is_none() -> None:
    """It has come to `int` before, whose error was taken for a fault of this program."""
    ids = ["map", [["capstan-answered", "1" * 1_000_000]]]
    with watched_row("Open_vSwitch", {"external_ids": ids}) as service:
        eventually(lambda: any("no bridge of" in text for text in service.problems()))


@contextmanager
def watched_switch() -> Iterator[QueueService]:
    """Yield a service that knows the tables of a switch, which stay as they are."""
    bridge = {"name": "br", "ports": ["set", []], "datapath_type": "system", "datapath_id": f"{DPID:016x}"}
    with watched_row("Bridge", bridge) as service:
        eventually(lambda: bool(service.snapshot(0.0)[0].name))
        yield service


def test_tables_are_read_in_the_thread_that_changes_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that came while another thread planned ended its request: a dictionary changed size in a loop."""
    readers: list[int] = []

    def spied(*arguments: Any) -> Any:
        readers.append(threading.get_ident())
        return plan(*arguments)

    monkeypatch.setattr(queue_service, "plan", spied)
    with watched_switch() as service:
        service.set_queues(PortQueues(3))
        assert service.wait(60) == []
        service.set_limits({PortRef(DPID, 1): PortLimit(10**6)})
        service.set_queues(PortQueues(4))
        assert service.wait(60) == []
        assert len(readers) >= 3
        assert threading.get_ident() not in readers


def test_what_was_planned_for_other_queues_is_not_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched_switch() as service:
        monkeypatch.setattr(service._watcher, "post", lambda work: None)  # as long as the thread is busy
        service.set_queues(PortQueues(4))
        assert service.wait(0.0) == ["br: not in force yet"]
        assert not service.snapshot(0.0)[0].in_force
        assert service.wait_ports([PortRef(DPID, 1)], 0.0) == ["not in force yet"]


def test_tables_that_no_plan_can_be_made_of_end_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> Any:
        raise KeyError("a column")

    with watched_switch() as service:
        monkeypatch.setattr(queue_service, "plan", fail)
        service.set_queues(PortQueues(4))
        assert service.wait(60) == ["br: its database refuses: a fault in this program"]
        monkeypatch.setattr(queue_service, "plan", plan)
        service.set_queues(PortQueues(5))
        assert service.wait(60) == []


def test_what_a_server_says_is_wrong_is_one_line_of_text() -> None:
    session = OvsdbSession(COLUMNS, 0.0)
    ticket = session.transact([])
    error = {"error": "no\n2026-11-24 ERROR capstan: forged \x1b[2J", "details": "x" * 1_000_000}
    (done,) = session.receive(json.dumps({"id": ticket, "result": [error], "error": None}).encode(), 0.0)
    assert isinstance(done, Done)
    assert done.error.startswith("no 2026-11-24 ERROR capstan: forged  [2J: xxx")
    assert done.error.isprintable()
    assert len(done.error) == limits.LONGEST_WORDS


def test_a_server_that_makes_faults_here_is_dialled_ever_more_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait that begins anew with a good message would be an hour: it does not begin anew."""
    listener = socket.socket(socket.AF_UNIX)
    path = tmp_path / "db.sock"
    listener.bind(str(path))
    listener.listen()
    listener.settimeout(60)

    def fail(name: str, found: object, changed: object) -> None:
        if found is not None:
            raise KeyError("a column")

    made = OvsdbWatcher(COLUMNS, fail)
    made.start()
    try:
        made.watch("s1", path)
        with listener:
            for _ in range(3):
                with listener.accept()[0] as server:
                    monkeypatch.setattr(watcher, "FIRST_WAIT_S", 3600.0)
                    server.sendall(b'{"id": "monitor", "error": null, "result": {}}')
                    while server.recv(4096):
                        continue
    finally:
        made.stop()


@pytest.mark.slow
def test_what_reading_a_server_takes_is_a_fifth_of_the_time(tmp_path: Path) -> None:
    """Its next message has come long before it is read."""
    listener = socket.create_server(str(tmp_path / "db.sock"), family=socket.AF_UNIX)
    listener.settimeout(60)
    servers: list[socket.socket] = []
    read: list[tuple[float, float]] = []

    def slow(name: str, found: object, changed: object) -> None:
        if found is None:
            return
        began = time.monotonic()
        servers[0].sendall(rows(len(read), 1))
        time.sleep(0.05)
        read.append((began, time.monotonic()))

    made = OvsdbWatcher(COLUMNS, slow)
    made.start()
    try:
        made.watch("s1", tmp_path / "db.sock")
        with listener, listener.accept()[0] as server:
            servers.append(server)
            server.sendall(b'{"id": "monitor", "error": null, "result": {}}')
            eventually(lambda: len(read) >= 5)
    finally:
        made.stop()
    for (began, ended), (again, _) in pairwise(read):
        assert ended - began <= (again - began) / 5
