"""The service of queues over a switch's database that does not do all that it is asked for."""

from __future__ import annotations

import json
import socket
from typing import Any

from controller.fabric.graph import PortRef
from controller.queues.ports import plan
from controller.queues.service import QueueService
from ovsdb.port_queues import PortLimit, PortQueues
from ovsdb.scanning import JsonScanner
from tests.unit.controller.queues.test_queues_ports import DPID, Database
from tests.waiting import PATIENCE_S

SLOW = PortLimit(10**6)
FIRST, SECOND = PortRef(DPID, 1), PortRef(DPID, 2)


class Server:
    """Speaks for a database with one client."""

    def __init__(self, database: Database, connection: socket.socket) -> None:
        self._database = database
        self._connection = connection
        self._connection.settimeout(PATIENCE_S)
        self._arrived = bytearray()
        self._scanner = JsonScanner()

    def send(self, message: dict[str, Any]) -> None:
        self._connection.sendall(json.dumps(message).encode())

    def rows(self) -> dict[str, Any]:
        """Return all rows, as they go over the wire."""
        return {
            name: {
                uuid: {"new": {column: _on_wire(value) for column, value in row.items()}}
                for uuid, row in rows.items()
            }
            for name, rows in self._database.tables.items()
        }

    def transaction(self) -> tuple[int, list[Any]]:
        """Return number and operations of the next transaction."""
        while True:
            while (end := self._scanner.end_of_text(self._arrived)) is None:
                piece = self._connection.recv(1 << 16)
                assert piece, "the client has closed the connection"
                self._arrived += piece
            message = json.loads(self._arrived[:end])
            del self._arrived[:end]
            if message.get("method") == "transact":
                return message["id"], message["params"][1:]


def _on_wire(value: Any) -> Any:
    if isinstance(value, dict):
        return ["map", [[key, _on_wire(inner)] for key, inner in value.items()]]
    return ["set", list(value)] if isinstance(value, tuple) else value


def test_a_database_that_refused_once_is_asked_for_other_limits() -> None:
    """Its disk was full for a moment, and a port that was slow by then stayed so."""
    database = Database("netdev", writer=True)
    found = plan(database.tables, DPID, PortQueues(), {1: SLOW})
    assert found is not None
    database.transact(found.operations)
    database.write_ports()
    listener = socket.create_server(("127.0.0.1", 0))
    service = QueueService(listener.getsockname()[1])
    service.start()
    try:
        service.set_limits({FIRST: SLOW})
        service.switch_up(DPID, "127.0.0.1")
        with listener, listener.accept()[0] as connection:
            server = Server(database, connection)
            server.send({"id": "monitor", "error": None, "result": server.rows()})
            assert service.wait_ports([FIRST], PATIENCE_S) == []
            service.set_limits({FIRST: SLOW, SECOND: SLOW})
            number, _ = server.transaction()
            server.send({"id": number, "error": None, "result": [{"error": "I/O error"}]})
            assert service.wait_ports([SECOND], PATIENCE_S) == ["its database refuses: I/O error"]
            service.set_limits({FIRST: SLOW})
            service.set_limits({})
            number, operations = server.transaction()
            database.transact(operations)
            database.write_ports()
            server.send({"id": number, "error": None, "result": [{}]})
            server.send({"id": None, "method": "update", "params": ["monitor", server.rows()]})
            assert service.wait_ports([FIRST, SECOND], PATIENCE_S) == []
            assert service.rates_bps()[FIRST] == 10**7
    finally:
        service.stop()
