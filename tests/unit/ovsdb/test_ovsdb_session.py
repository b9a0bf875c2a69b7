"""OVSDB (RFC 7047): the session on bytes, and the watcher and the service of queues on a real ovsdb-server."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.queues.service import QueueService
from ovsdb.port_queues import ONE_QUEUE, Applied, PortQueues, QueueCounters, counters_to_text
from ovsdb.scanning import JsonScanner
from ovsdb.session import PROBE_S, Changed, Done, OvsdbError, OvsdbSession, Tables, delete_keys, set_keys
from ovsdb.watcher import OvsdbWatcher
from tests.free_ports import free_port
from tests.waiting import eventually

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
COLUMNS = {"Port": ("name", "qos"), "QoS": ("other_config",)}
DPID = 0x2B


def sent(session: OvsdbSession) -> list[Any]:
    """Parse the JSON texts that a session has to send."""
    text, found, decoder = session.data_to_send().decode(), [], json.JSONDecoder()
    while text:
        message, end = decoder.raw_decode(text)
        found.append(message)
        text = text[end:]
    return found


ROWS = {
    "Port": {
        "p1": {"new": {"name": 'eth1 {"ü"}', "qos": ["uuid", "q1"]}},
        "p2": {"new": {"name": "eth2", "qos": ["set", []]}},
    },
    "QoS": {"q1": {"new": {"other_config": ["map", [["a", "1"], ["b", "2"]]]}}},
}
REPLY = {"id": "monitor", "error": None, "result": ROWS}
WANTED: Tables = {
    "Port": {"p1": {"name": 'eth1 {"ü"}', "qos": "q1"}, "p2": {"name": "eth2", "qos": ()}},
    "QoS": {"q1": {"other_config": {"a": "1", "b": "2"}}},
}


@given(st.lists(st.integers(1, 40), max_size=30), st.booleans())
def test_tables_are_the_same_however_the_bytes_are_cut(cuts: list[int], ascii_only: bool) -> None:
    gone = {
        "id": None,
        "method": "update",
        "params": ["monitor", {"Port": {"p2": {"old": {"name": "eth2"}}}}],
    }
    data = b"".join(json.dumps(one, ensure_ascii=ascii_only).encode() + b"\n" for one in (REPLY, gone))
    session = OvsdbSession(COLUMNS, 0.0)
    events: list[Changed | Done] = []
    for size in [*cuts, len(data)]:
        events += session.receive(data[:size], 0.0)
        data = data[size:]
    assert events == [Changed(frozenset(COLUMNS)), Changed(frozenset({"Port"}))]
    assert session.known
    assert session.tables == WANTED | {"Port": {"p1": WANTED["Port"]["p1"]}}


@pytest.mark.slow
@given(
    st.recursive(
        st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
    st.sampled_from(b'"{}[] x'),
)
def test_the_scanner_looks_at_no_byte_twice(value: Any, cuts: list[int], overwrite: int) -> None:
    """What it has read is overwritten between calls; only a backslash at the very end may be read again."""
    data = json.dumps({"it": value}).encode()
    scanner, arrived, end = JsonScanner(), bytearray(), None
    for cut in [*cuts, len(data)]:
        arrived += data[len(arrived) : len(arrived) + cut]
        end = scanner.end_of_text(arrived)
        if end is not None:
            break
        arrived[:-1] = bytes([overwrite]) * (len(arrived) - 1)
    assert end == len(data)


@given(
    st.recursive(
        st.one_of(st.text(), st.integers(), st.none()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ),
    st.lists(st.integers(1, 9), max_size=40),
    st.booleans(),
)
def test_objects_are_found_whole_however_they_are_cut(value: Any, cuts: list[int], ascii_only: bool) -> None:
    texts = [json.dumps({"it": one}, ensure_ascii=ascii_only).encode() for one in (value, 1, value)]
    data, scanner, arrived, found = b" \n".join(texts), JsonScanner(), bytearray(), []
    for size in [*cuts, len(data)]:
        arrived += data[:size]
        data = data[size:]
        while (end := scanner.end_of_text(arrived)) is not None:
            found.append(bytes(arrived[:end]))
            del arrived[:end]
    assert [one.strip() for one in found] == texts
    assert [json.loads(one) for one in found] == [json.loads(one) for one in texts]


@pytest.mark.slow
def test_a_server_that_asks_and_does_not_read_is_let_go(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    path = tmp_path / "db.sock"
    listener.bind(str(path))
    listener.listen()
    watcher = OvsdbWatcher(COLUMNS, lambda name, tables, changed: None)
    watcher.start()
    try:
        watcher.watch("s1", path)
        with listener, listener.accept()[0] as server:
            echo = json.dumps({"id": "echo", "method": "echo", "params": ["x" * 100_000]}).encode()
            server.settimeout(60)
            with pytest.raises(ConnectionError):
                server.sendall(echo * 2000)  # 200 MB
            eventually(lambda: "unread" in watcher.problem("s1"))
    finally:
        watcher.stop()
    watcher.post(lambda: None)  # after its end: nothing is written anywhere


def test_it_asks_answers_and_reports_outcomes() -> None:
    session = OvsdbSession(COLUMNS, 0.0)
    (asked,) = sent(session)
    assert asked["params"][2] == {name: {"columns": list(columns)} for name, columns in COLUMNS.items()}
    ticket = session.transact(set_keys("QoS", "q1", "other_config", {"a": "2"}))
    assert sent(session)[0]["id"] == ticket
    replies = [
        ({"id": ticket, "error": None, "result": [{"count": 1}]}, [Done(ticket, "")]),
        ({"id": 7, "error": None, "result": [{}, {"error": "e", "details": "d"}]}, [Done(7, "e: d")]),
        ({"id": 8, "error": "no", "result": None}, [Done(8, "no")]),
    ]
    for message, events in replies:
        assert session.receive(json.dumps(message).encode(), 1.0) == events
    assert session.receive(b'{"id": "x", "method": "echo", "params": [1]}', 1.0) == []
    assert sent(session) == [{"id": "x", "result": [1], "error": None}]


def test_a_server_that_says_nothing_is_asked_and_given_up() -> None:
    session = OvsdbSession(COLUMNS, 0.0)
    sent(session)
    session.timer(PROBE_S)
    assert sent(session)[0]["method"] == "echo"
    session.timer(2 * PROBE_S - 0.1)
    with pytest.raises(OvsdbError, match="has not answered"):
        session.timer(2 * PROBE_S)


def test_a_server_that_was_not_read_for_long_has_time_to_answer() -> None:
    """What comes of it is read late after a large message, and where the process did not run."""
    session = OvsdbSession(COLUMNS, 0.0)
    sent(session)
    session.timer(4 * PROBE_S)
    assert sent(session)[0]["method"] == "echo"
    assert session.deadline() == 5 * PROBE_S
    session.timer(4 * PROBE_S + 0.1)
    assert session.receive(b'{"id": "echo", "result": [], "error": null}', 4 * PROBE_S + 0.2) == []
    session.timer(5 * PROBE_S)
    assert sent(session) == []


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1",
        b"[1]",
        b'{"a":' + b"[" * 1000,
        b'{"a": "\xff"}',
        b"\xff\xff\xff\xff",
        b'{"id": "monitor", "error": {"error": "unknown table"}, "result": null}',
        b'{"method": "update", "params": [1], "id": null}',
        b'{"method": "update", "params": ["monitor", {"Unknown": {"x": {"new": {}}}}], "id": null}',
    ],
)
def test_what_is_no_ovsdb_ends_the_session(data: bytes) -> None:
    with pytest.raises(OvsdbError):
        OvsdbSession(COLUMNS, 0.0).receive(data, 0.0)


class Server:
    """A real ovsdb-server with a bridge of one port, and no ovs-vswitchd."""

    def __init__(self, place: Path, port: int = 0) -> None:
        self.place, self.port = place, port
        self._remotes = [f"--remote=punix:{place}/db.sock"]
        if port:
            self._remotes.append(f"--remote=ptcp:{port}:127.0.0.1")
        subprocess.run(["ovsdb-tool", "create", str(place / "conf.db"), str(SCHEMA)], check=True)
        self.start()
        self.vsctl("add-br", "br", "--", "set", "bridge", "br", "datapath_type=netdev")
        self.be_the_switch()
        self.vsctl(
            *["--id=@q", "create", "qos", "type=linux-noop", "external_ids:capstan-writer=test"],
            *["--", "add-port", "br", "eth1", "--", "set", "port", "eth1", "qos=@q"],
        )

    def start(self) -> None:
        (self.place / "db.sock").unlink(missing_ok=True)
        command = ["ovsdb-server", str(self.place / "conf.db"), *self._remotes, "-vconsole:off"]
        control = f"--unixctl={self.place}/ctl"
        self.process = subprocess.Popen([*command, control], stderr=subprocess.DEVNULL)
        eventually(lambda: (self.place / "db.sock").exists())

    def be_the_switch(self) -> None:
        """Set what ovs-vswitchd sets whenever it starts: this column does not outlive the server."""
        self.vsctl("set", "bridge", "br", f'datapath_id="{DPID:016x}"')

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def vsctl(self, *words: str) -> str:
        command = ["ovs-vsctl", "--no-wait", "--timeout=60", f"--db=unix:{self.place}/db.sock", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def qos(self, column: str) -> str:
        return self.vsctl("--columns", column, "--bare", "list", "qos")

    def say_applied(self, applied: Applied) -> None:
        quoted = json.dumps(applied.to_text())
        self.vsctl("set", "qos", self.qos("_uuid").strip(), f"external_ids:capstan-applied={quoted}")


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    assert shutil.which("ovsdb-server"), "the switches' packages are not installed"
    made = Server(tmp_path_factory.mktemp("db"), free_port())
    yield made
    made.kill()


def test_the_watcher_keeps_up_and_comes_back(server: Server) -> None:
    seen: list[Tables | None] = []
    done: list[tuple[str, int, str]] = []
    watcher = OvsdbWatcher(
        COLUMNS,
        lambda name, tables, changed: seen.append(tables),
        lambda name, ticket, error: done.append((name, ticket, error)),
    )
    watcher.start()
    try:
        watcher.watch("one", server.place / "db.sock")
        watcher.watch("absent", server.place / "absent.sock")
        eventually(lambda: bool(seen) and seen[-1] is not None)
        (uuid,) = seen[-1]["QoS"]  # type: ignore[index]
        operations = [
            *set_keys("QoS", uuid, "other_config", {"x": "1", "y": "2"}),
            *set_keys("QoS", uuid, "other_config", {"x": "3"}),
            *delete_keys("QoS", uuid, "other_config", ["y"]),
        ]
        watcher.post(lambda: watcher.transact("one", operations))
        watcher.post(lambda: watcher.transact("one", [{"op": "nonsense", "table": "QoS"}]))
        eventually(lambda: len(done) == 2)
        assert done[0][2] == ""
        assert done[1][2] != ""
        eventually(lambda: seen[-1]["QoS"][uuid]["other_config"] == {"x": "3"})  # type: ignore[index]
        assert watcher.problem("one") == ""
        assert "No such file" in watcher.problem("absent")
        server.kill()
        eventually(lambda: seen[-1] is None)
        assert watcher.problem("one") != ""
        server.start()
        eventually(lambda: seen[-1] is not None)
        assert seen[-1]["QoS"][uuid]["other_config"] == {"x": "3"}  # type: ignore[index]
        watcher.watch("one", None)
        eventually(lambda: seen[-1] is None)
    finally:
        watcher.stop()


def test_the_service_asks_for_queues_waits_and_reads_counters(server: Server) -> None:
    service = QueueService(server.port)
    service.start()
    try:
        service.set_queues(ONE_QUEUE)
        service.switch_up(DPID, "127.0.0.1")
        eight = PortQueues(8, 100)
        service.set_queues(eight)
        eventually(lambda: "capstan-queues=8" in server.qos("other_config"))
        assert service.wait(0.2) == ["br: eth1: not in force yet"]
        server.say_applied(Applied(8, 100, 10**7))
        assert service.wait(60) == []
        (view,) = service.snapshot(0.05)
        assert (view.name, view.datapath, view.in_force, view.counted_at) == ("br", "netdev", True, None)

        asked = json.loads(server.vsctl("--format=json", "--columns=external_ids", "list", "open_vswitch"))[
            "data"
        ][0][0][1]
        counters = {"eth1": tuple(QueueCounters(q, q, q, q, q) for q in range(8))}
        number = dict(asked)["capstan-asked"]
        server.vsctl(
            "set",
            "open_vswitch",
            ".",
            f"external_ids:capstan-counters={json.dumps(counters_to_text(counters))}",
            f'external_ids:capstan-answered="{number}"',
        )
        eventually(lambda: service.snapshot(0.0)[0].counters == counters)

        server.say_applied(Applied(1, 100, 10**7, "no more memory"))
        eventually(lambda: service.problems() == ["br: eth1: no more memory"])
        assert service.wait(3600) == ["br: eth1: no more memory"], "there is nothing to wait for"

        service.set_queues(ONE_QUEUE)
        eventually(lambda: "capstan-queues" not in server.qos("other_config"))
        server.kill()
        eventually(lambda: not service.snapshot(0.0)[0].ports)
        assert service.wait(60) == [], "one queue is what a switch has, whichever answers"
        service.set_queues(eight)
        assert "cannot be asked for queues" in service.wait(0.1)[0]
        server.start()
        eventually(lambda: "no bridge of this datapath id" in service.wait(0.1)[0])
        server.be_the_switch()
        eventually(lambda: "capstan-queues=8" in server.qos("other_config"))
        service.switch_down(DPID)
        assert service.snapshot(0.0) == []
        assert service.wait(60) == []
    finally:
        service.stop()
